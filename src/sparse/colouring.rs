//! Colourings: columns of one colour share a product.
//!
//! A column and another one with an entry in the same row get different colours (Curtis, Powell and
//! Reid, "On the Estimation of Sparse Jacobian Matrices", 1974). For a symmetric matrix fewer
//! colours suffice: a colouring of its graph in which each path of four vertices has three colours,
//! a star colouring (Coleman and Moré, "Estimation of Sparse Hessian Matrices and Graph Coloring
//! Problems", 1984). Two colours induce a set of stars, and the entry of a leaf and its hub can be
//! read at the leaf. Both are greedy; the star colouring is that of Gebremedhin, Tarafdar, Manne
//! and Pothen, "New Acyclic and Star Coloring Algorithms with Application to Computing Hessians",
//! 2007, with the hubs around each vertex in a list, so that a vertex of many neighbours costs no
//! more than its own edges.

use hashbrown::HashMap;

use super::pattern::Pattern;

/// A colour for each column, from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Colouring {
    pub(super) colours: Vec<u32>,
    pub(super) count: usize,
}

const NONE: u32 = u32::MAX;

impl Colouring {
    /// A colour of its own for each column.
    pub(super) fn distinct(columns: usize) -> Colouring {
        Colouring { colours: (0..columns as u32).collect(), count: columns }
    }

    /// Colours for the columns of a matrix. `by_columns` is the transposed pattern.
    pub(super) fn of_columns(by_rows: &Pattern, by_columns: &Pattern) -> Colouring {
        if by_rows.longest_row() == by_rows.columns {
            return Colouring::distinct(by_rows.columns);
        }
        let mut greedy = Greedy::new(by_rows.columns);
        for column in largest_first(by_columns) {
            for &row in by_columns.row(column) {
                by_rows.row(row).iter().for_each(|&other| greedy.forbid(other));
            }
            greedy.colour(column);
        }
        greedy.colouring
    }

    /// Colours for the columns of a symmetric matrix: the fewer ones of two orders.
    pub(super) fn of_symmetric(pattern: &Pattern) -> Colouring {
        let mut smallest_first = largest_first(pattern);
        smallest_first.reverse();
        let orders = [(0..pattern.columns).collect(), smallest_first];
        let colourings =
            orders.iter().map(|order: &Vec<usize>| Stars::new(pattern).colouring(order));
        let least = colourings.min_by_key(|colouring| colouring.count);
        least.unwrap_or_else(|| Colouring::distinct(pattern.columns))
    }
}

/// The rows of `pattern`, longest first.
fn largest_first(pattern: &Pattern) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..pattern.rows()).collect();
    rows.sort_by_key(|&row| core::cmp::Reverse(pattern.row(row).len()));
    rows
}

/// A greedy colouring under way.
struct Greedy {
    colouring: Colouring,
    /// The round in which each colour was last forbidden.
    forbidden: Vec<usize>,
    /// The number of the current round, from 1.
    round: usize,
}

impl Greedy {
    fn new(columns: usize) -> Self {
        let colouring = Colouring { colours: vec![NONE; columns], count: 0 };
        Greedy { colouring, forbidden: vec![0; columns + 1], round: 1 }
    }

    fn colour_of(&self, column: usize) -> Option<u32> {
        Some(self.colouring.colours[column]).filter(|&colour| colour != NONE)
    }

    /// Forbids the colour of `other`, if it has one, to the next column.
    fn forbid(&mut self, other: usize) {
        if let Some(colour) = self.colour_of(other) {
            self.forbidden[colour as usize] = self.round;
        }
    }

    /// Gives `column` the first colour that is not forbidden, and begins the next round.
    fn colour(&mut self, column: usize) {
        let free = self.forbidden.iter().position(|&round| round != self.round).unwrap_or(0);
        self.colouring.colours[column] = free as u32;
        self.colouring.count = self.colouring.count.max(free + 1);
        self.round += 1;
    }
}

/// A star colouring under way. A vertex with several neighbours of one colour is the hub of a star
/// whose leaves they are.
struct Stars<'a> {
    pattern: &'a Pattern,
    greedy: Greedy,
    /// For each vertex and colour the first neighbour of this colour; true if there are several.
    neighbours: HashMap<(usize, u32), (usize, bool)>,
    /// For each vertex the hubs whose leaf it is.
    hubs: Vec<Vec<usize>>,
    /// For each colour the latest vertex with a neighbour of this colour, and the first such one.
    seen: Vec<(usize, usize)>,
    /// For each vertex the latest one for which the colours of its neighbours were forbidden.
    treated: Vec<usize>,
}

impl<'a> Stars<'a> {
    fn new(pattern: &'a Pattern) -> Self {
        let columns = pattern.columns;
        Stars {
            pattern,
            greedy: Greedy::new(columns),
            neighbours: HashMap::new(),
            hubs: vec![Vec::new(); columns],
            seen: vec![(usize::MAX, 0); columns + 1],
            treated: vec![usize::MAX; columns],
        }
    }

    fn colouring(mut self, order: &[usize]) -> Colouring {
        let pattern = self.pattern;
        for &vertex in order {
            for &neighbour in pattern.row(vertex).iter().filter(|&&other| other != vertex) {
                if let Some(colour) = self.greedy.colour_of(neighbour) {
                    self.forbid_for(vertex, neighbour, colour);
                }
            }
            self.greedy.colour(vertex);
            for &neighbour in pattern.row(vertex).iter().filter(|&&other| other != vertex) {
                if self.greedy.colour_of(neighbour).is_some() {
                    self.add_neighbour(vertex, neighbour);
                    self.add_neighbour(neighbour, vertex);
                }
            }
        }
        self.greedy.colouring
    }

    /// Forbids the colours that `vertex` must not have because of a neighbour of this colour.
    fn forbid_for(&mut self, vertex: usize, neighbour: usize, colour: u32) {
        self.greedy.forbid(neighbour);
        let (seen_by, first) = self.seen[colour as usize];
        if seen_by != vertex {
            self.seen[colour as usize] = (vertex, neighbour);
            // Of a star whose leaf the neighbour is, it must not become a hub as well.
            self.hubs[neighbour].iter().for_each(|&hub| self.greedy.forbid(hub));
            return;
        }
        // The vertex becomes the hub of both, which must be hubs of no star of these colours.
        for leaf in [first, neighbour] {
            if core::mem::replace(&mut self.treated[leaf], vertex) != vertex {
                self.pattern.row(leaf).iter().for_each(|&other| self.greedy.forbid(other));
            }
        }
    }

    /// Notes that `neighbour` is a coloured neighbour of `vertex`.
    fn add_neighbour(&mut self, vertex: usize, neighbour: usize) {
        let Some(colour) = self.greedy.colour_of(neighbour) else { return };
        let (first, is_hub) =
            *self.neighbours.entry((vertex, colour)).or_insert((neighbour, false));
        if first == neighbour {
            return;
        }
        if !is_hub {
            self.neighbours.insert((vertex, colour), (first, true));
            self.hubs[first].push(vertex);
        }
        self.hubs[neighbour].push(vertex);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// The pattern of a symmetric matrix with a diagonal and these entries below it.
    fn symmetric(size: usize, below: &[(usize, usize)]) -> Pattern {
        let mut pattern = Pattern::with_columns(size);
        for row in 0..size {
            let is_entry = |&column: &usize| {
                let edge = (row.max(column), row.min(column));
                row == column || below.contains(&edge)
            };
            pattern.push_row((0..size).filter(is_entry).collect::<Vec<_>>());
        }
        pattern
    }

    /// Tests that neighbours, and the ends of paths of three edges with two inner colours, differ.
    fn is_star_colouring(pattern: &Pattern, Colouring { colours, .. }: &Colouring) -> bool {
        let neighbours =
            |of: usize| pattern.row(of).iter().copied().filter(move |&other| other != of);
        let is_star_path = |a: usize, b: usize, c: usize, d: usize| {
            a == c || b == d || a == d || colours[a] != colours[c] || colours[b] != colours[d]
        };
        (0..pattern.columns).all(|b| {
            neighbours(b).all(|c| {
                colours[b] != colours[c]
                    && neighbours(b).all(|a| neighbours(c).all(|d| is_star_path(a, b, c, d)))
            })
        })
    }

    #[test]
    fn arrows_bands_and_grids_take_few_colours() {
        let size = 12;
        let arrow: Vec<_> = (1..size).map(|row| (row, 0)).collect();
        let reversed: Vec<_> = (0..size - 1).map(|column| (size - 1, column)).collect();
        let band: Vec<_> = (1..size).map(|row| (row, row - 1)).collect();
        for (edges, most) in [(arrow, 2), (reversed, 2), (band, 3), (vec![], 1)] {
            let pattern = symmetric(size, &edges);
            let colouring = Colouring::of_symmetric(&pattern);
            assert!(is_star_colouring(&pattern, &colouring));
            assert!(colouring.count <= most, "{} {edges:?}", colouring.count);
        }
        let side = 6;
        let grid: Vec<_> = (0..side * side)
            .flat_map(|at| {
                let left = (at % side > 0).then(|| (at, at - 1));
                let above = (at >= side).then(|| (at, at - side));
                left.into_iter().chain(above)
            })
            .collect();
        let pattern = symmetric(side * side, &grid);
        let colouring = Colouring::of_symmetric(&pattern);
        assert!(is_star_colouring(&pattern, &colouring) && colouring.count <= 7);
    }

    #[test]
    fn colourings_of_random_matrices_are_valid() {
        let mut random = Random::new(3);
        for round in 0..300 {
            let size = 2 + round % 14;
            let density = random.uniform(0.0, 0.6);
            let pairs = (0..size).flat_map(|row| (0..row).map(move |column| (row, column)));
            let edges: Vec<_> = pairs.filter(|_| random.uniform(0.0, 1.0) < density).collect();
            let pattern = symmetric(size, &edges);
            assert!(is_star_colouring(&pattern, &Colouring::of_symmetric(&pattern)), "{pattern:?}");
            let columns = Colouring::of_columns(&pattern, &pattern.transposed().0);
            for row in 0..size {
                let mut found: Vec<_> =
                    pattern.row(row).iter().map(|&one| columns.colours[one]).collect();
                found.sort_unstable();
                found.dedup();
                assert_eq!(found.len(), pattern.row(row).len());
            }
        }
    }
}
