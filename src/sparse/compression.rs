//! Compressed evaluation: the products that give all entries of a pattern, and the entries that
//! each of them gives.

use std::sync::Arc;

use super::colouring::Colouring;
use super::kind::MatrixKind;
use super::pattern::Pattern;

/// The kind of products with a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Products {
    /// The matrix times directions: sums of columns.
    Columns,
    /// Weights times the matrix: sums of rows.
    Rows,
}

/// The products that give all entries of a pattern.
#[derive(Debug)]
pub(crate) struct Compression {
    pub(crate) pattern: Arc<Pattern>,
    pub(crate) products: Products,
    colouring: Colouring,
    /// The end of the entries of each product in `reads`.
    ends: Vec<usize>,
    /// The numbers of entries of the matrix, and their places in a product.
    reads: Vec<(usize, usize)>,
}

impl Compression {
    /// The fewest products, by `products` or by columns or rows if that is `None`, for a matrix of
    /// this kind.
    pub(crate) fn new(pattern: Pattern, kind: MatrixKind, products: Option<Products>) -> Self {
        let pattern = Arc::new(pattern);
        if kind == MatrixKind::Hessian {
            let colouring = Colouring::of_symmetric(&pattern);
            let (products, sources) = (Products::Columns, symmetric_sources(&pattern, &colouring));
            // A colouring that does not separate all entries is a bug in it.
            return match sources {
                Some(sources) => Compression::of_sources(pattern, products, colouring, &sources),
                None => {
                    debug_assert!(false, "the colouring is no star colouring");
                    let colouring = Colouring::distinct(pattern.columns);
                    let sources =
                        entry_sources(&pattern, |row, column| (colouring.colours[column], row));
                    Compression::of_sources(pattern, products, colouring, &sources)
                }
            };
        }
        let products = if kind == MatrixKind::Gradient { Some(Products::Rows) } else { products };
        let (transposed, _) = pattern.transposed();
        let of = |products| match products {
            Products::Columns => Colouring::of_columns(&pattern, &transposed),
            Products::Rows => Colouring::of_columns(&transposed, &pattern),
        };
        // A row with n entries needs n products of columns.
        let least = |products| match products {
            Products::Columns => pattern.longest_row(),
            Products::Rows => transposed.longest_row(),
        };
        let (products, colouring) = match products {
            Some(products) => (products, of(products)),
            None => {
                // A product of rows is cheaper to read.
                let rows_first = least(Products::Rows) <= least(Products::Columns);
                let (first, second) = match rows_first {
                    true => (Products::Rows, Products::Columns),
                    false => (Products::Columns, Products::Rows),
                };
                let colouring = of(first);
                if colouring.count <= least(second) {
                    (first, colouring)
                } else {
                    let other = of(second);
                    let is_better = other.count < colouring.count;
                    if is_better { (second, other) } else { (first, colouring) }
                }
            }
        };
        let sources = match products {
            Products::Columns => {
                entry_sources(&pattern, |row, column| (colouring.colours[column], row))
            }
            Products::Rows => {
                entry_sources(&pattern, |row, column| (colouring.colours[row], column))
            }
        };
        Compression::of_sources(pattern, products, colouring, &sources)
    }

    /// `sources` has for each entry the product that gives it, and its place there.
    fn of_sources(
        pattern: Arc<Pattern>,
        products: Products,
        colouring: Colouring,
        sources: &[(u32, usize)],
    ) -> Self {
        // A matrix without columns takes one product, too: it finds out which path a call takes.
        let colouring = Colouring { count: colouring.count.max(1), ..colouring };
        let mut ends = vec![0; colouring.count + 1];
        sources.iter().for_each(|&(product, _)| ends[product as usize + 1] += 1);
        (0..colouring.count).for_each(|product| ends[product + 1] += ends[product]);
        let (mut next, mut reads) = (ends.clone(), vec![(0, 0); sources.len()]);
        for (entry, &(product, place)) in sources.iter().enumerate() {
            let at = &mut next[product as usize];
            reads[*at] = (entry, place);
            *at += 1;
        }
        Compression { pattern, products, colouring, ends, reads }
    }

    /// The number of products, at least one.
    pub(crate) fn count(&self) -> usize {
        self.colouring.count
    }

    /// Appends the direction, or the weights, of product number `product` to `seeds`: one for each
    /// column, or row, of its colour.
    pub(crate) fn seed(&self, product: usize, seeds: &mut Vec<f64>) {
        let is_of = |&colour: &u32| if colour as usize == product { 1.0 } else { 0.0 };
        seeds.extend(self.colouring.colours.iter().map(is_of));
    }

    /// The columns, or rows, of product number `product`.
    pub(crate) fn members(&self, product: usize) -> impl Iterator<Item = usize> {
        let numbered = self.colouring.colours.iter().enumerate();
        numbered.filter(move |&(_, &colour)| colour as usize == product).map(|(number, _)| number)
    }

    /// Reads the entries that product number `product` gives; `result` gives its elements.
    pub(crate) fn read(&self, product: usize, result: impl Fn(usize) -> f64, entries: &mut [f64]) {
        let reads = &self.reads[self.ends[product]..self.ends[product + 1]];
        reads.iter().for_each(|&(entry, place)| entries[entry] = result(place));
    }
}

/// The product that gives each entry, and its place there, by `source` of its row and column.
/// Columns of one colour have no row in common, so an entry is in the product with its column, at
/// its row; and the same of rows.
fn entry_sources(
    pattern: &Pattern,
    source: impl Fn(usize, usize) -> (u32, usize),
) -> Vec<(u32, usize)> {
    let rows = (0..pattern.rows()).map(|row| (row, pattern.row(row)));
    rows.flat_map(|(row, columns)| columns.iter().map(move |&column| (row, column)))
        .map(|(row, column)| source(row, column))
        .collect()
}

/// The same for a symmetric matrix: an entry is read in its row, or that on the other side of the
/// diagonal is, where no other column of its colour has an entry. Both entries get one number.
/// `None` if there is an entry without such a place.
fn symmetric_sources(pattern: &Pattern, colouring: &Colouring) -> Option<Vec<(u32, usize)>> {
    let colours = &colouring.colours;
    let mut sources = vec![None; pattern.len()];
    let mut counts = vec![0u32; colouring.count];
    for row in 0..pattern.rows() {
        let columns = pattern.row(row);
        columns.iter().for_each(|&column| counts[colours[column] as usize] += 1);
        for (&column, entry) in columns.iter().zip(pattern.offsets[row]..) {
            if counts[colours[column] as usize] == 1 && sources[entry].is_none() {
                let source = Some((colours[column], row));
                sources[entry] = source;
                sources[pattern.find(column, row)?] = source;
            }
        }
        columns.iter().for_each(|&column| counts[colours[column] as usize] = 0);
    }
    sources.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::panic::Location;

    use super::*;
    use crate::random::Random;
    use crate::sparse::pattern_of_trace;
    use crate::trace::{Inputs, Tracer, Var};

    /// The number of products for the Hessian of `f` in `unknowns` unknowns.
    fn products(f: fn(&[Var]) -> Var, unknowns: usize) -> usize {
        let mut tracer = Tracer::default();
        let inputs = Inputs { active: &vec![0.5; unknowns], inactive: &[] };
        let trace = tracer.run(|x, _| f(x), inputs, 1 << 22, Location::caller()).unwrap();
        let pattern = pattern_of_trace(&trace, MatrixKind::Hessian).unwrap();
        Compression::new(pattern, MatrixKind::Hessian, None).count()
    }

    #[test]
    fn the_number_of_products_does_not_depend_on_the_number_of_unknowns() {
        let chain = |x: &[Var]| x.windows(2).map(|x| (x[1] - x[0] * x[0]).powi(2)).sum::<Var>();
        let arrow = |x: &[Var]| x[1..].iter().map(|&leaf| leaf * x[0] * x[0]).sum::<Var>();
        let squares = |x: &[Var]| x.iter().map(|&x| x * x).sum::<Var>();
        for unknowns in [100, 10_000] {
            assert_eq!(products(chain, unknowns), 3);
            assert_eq!(products(arrow, unknowns), 2);
            assert_eq!(products(squares, unknowns), 1);
        }
    }

    /// Has `compression` recover `matrix`, which has its pattern.
    fn recover(compression: &Compression, matrix: &[f64], columns: usize) -> Vec<f64> {
        let (mut entries, mut seed) = (vec![f64::NAN; compression.pattern.len()], Vec::new());
        for product in 0..compression.count() {
            compression.seed(product, &mut seed);
            let rows = matrix.len() / columns;
            let result: Vec<f64> = match compression.products {
                Products::Columns => (0..rows)
                    .map(|row| (0..columns).map(|at| matrix[row * columns + at] * seed[at]).sum())
                    .collect(),
                Products::Rows => (0..columns)
                    .map(|at| (0..rows).map(|row| matrix[row * columns + at] * seed[row]).sum())
                    .collect(),
            };
            compression.read(product, |place| result[place], &mut entries);
        }
        entries
    }

    #[test]
    fn products_give_all_entries() {
        let mut random = Random::new(5);
        for round in 0..200 {
            let (rows, columns) = (1 + round % 9, 1 + round % 7);
            let density = random.uniform(0.0, 0.8);
            let is_square = round % 2 == 0;
            let rows = if is_square { columns } else { rows };
            let mut matrix = vec![0.0; rows * columns];
            for row in 0..rows {
                for column in 0..columns {
                    if random.uniform(0.0, 1.0) < density {
                        matrix[row * columns + column] = (1 + row * columns + column) as f64;
                        if is_square {
                            matrix[column * columns + row] = matrix[row * columns + column];
                        }
                    }
                }
            }
            let mut pattern = Pattern::with_columns(columns);
            for row in matrix.chunks(columns) {
                pattern.push_row((0..columns).filter(|&column| row[column] != 0.0));
            }
            let expected: Vec<f64> = matrix.iter().copied().filter(|&entry| entry != 0.0).collect();
            let kind = if is_square {
                MatrixKind::Hessian
            } else {
                MatrixKind::Jacobian { outputs: rows }
            };
            for products in [None, Some(Products::Rows), Some(Products::Columns)] {
                let compression = Compression::new(pattern.clone(), kind, products);
                assert_eq!(recover(&compression, &matrix, columns), expected, "{matrix:?}");
                assert!(compression.count() <= columns.max(rows));
            }
        }
    }
}
