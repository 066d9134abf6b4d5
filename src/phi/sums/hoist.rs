//! Sums over data that are known only in a call: computed once, before the
//! loops that use them.
//!
//! The terms, or what they are squares of, are lines: a·u + b·v + … + c, where a, b
//! and c are data. Lines have the sums of these as their coefficients, in pairs of numbers.
//!
//! Of squares the first loops over the data, one for each variable, make the
//! slopes orthogonal to each other by the modified Gram-Schmidt process: e₁ = a,
//! e₂ = b − m·a, and so on, so that a line is e₁·(u + m·v) + e₂·v + …, and they find
//! the pivot by least squares. Around it the last loop adds up. Since slopes and
//! what is left at the pivot are orthogonal, the magnitudes of the form are at most
//! √(k + 1) times √(n·Σg²) for n terms g of k variables, for any data and any
//! values of the variables; of a sum of squares nothing cancels at all. What does
//! cancel is u + m·v, where the data hardly tell u from v; so that is computed in
//! pairs of numbers. Other polynomials are added up around the same pivot, in the same
//! coordinates, of the lines that they are products of (`expand`).
//!
//! Source of the process: Å. Björck, "Solving linear least squares problems by
//! Gram-Schmidt orthogonalization", BIT 7, 1967.

use hashbrown::HashMap;

use super::chain::Chain;
use super::form::all_moved_out;
use super::guards::Sizes;
use super::polynomial::Basis;
use super::rows::{Kind, Lines, Row};
use super::steps::{Coefficient, Place, Steps};
use super::terms::{Step, Variables, terms};
use super::{expand, inverses, zeros};
use crate::op::Op;
use crate::phi::close::CloseLimits;
use crate::phi::draft::{Body, Draft};
use crate::phi::notation::Brief;
use crate::phi::pair::{Pair, Pairs};
use crate::ssa::{Node, Region};

/// How often the loop must be run in those around it for each variable, for its
/// data to be summed up before them.
const RUNS: u64 = 8;

/// A sum of more variables would need too many loops over the data.
const MOST_VARIABLES: usize = 3;

/// A slope whose square has less than this part left when what it has in common
/// with others is taken away tells nothing but rounding.
const DEPENDENT: f64 = 1e-24;

/// Replaces a sum by one over data that is computed before the loops around, and
/// returns its form, or why there is none.
/// Quotients are products with `inverses`.
pub(super) fn hoist(
    draft: &mut Draft,
    region: Region,
    chain: &Chain,
    inverses: &HashMap<Node, Node>,
    limits: &CloseLimits,
) -> Result<String, String> {
    let mut around = Vec::new();
    let mut next = draft.loop_around(region);
    while let Some(outer) = next {
        around.push(outer);
        next = draft.loop_around(outer);
    }
    let mut why = "there is no loop around it in which such a sum would be used often".to_owned();
    while let Some(outer) = around.pop() {
        let inner = around.iter().chain([&outer]);
        let bound = |&region: &Region| draft.graph.regions[region].cycle.as_ref().map(|c| c.bound);
        let runs = inner.filter_map(bound).map(u64::from).fold(1, u64::saturating_mul);
        if runs < RUNS {
            continue;
        }
        match fitting(draft, region, outer, chain, runs, inverses, limits) {
            Ok(fit) => {
                inverses::require(draft, region, inverses);
                return Ok(Sum::new(draft, region, outer, chain, &fit).emit(fit.sizes));
            }
            Err(this) => why = this,
        }
    }
    Err(why)
}

/// The lines of terms, and the monomials of those that are neither lines nor squares.
struct Fit {
    lines: Lines,
    sizes: Sizes,
    basis: Option<Basis>,
}

/// The terms, if there is a form of them that is good for all data.
fn fitting(
    draft: &Draft,
    region: Region,
    outer: Region,
    chain: &Chain,
    runs: u64,
    inverses: &HashMap<Node, Node>,
    limits: &CloseLimits,
) -> Result<Fit, String> {
    let terms = terms(draft, region, &chain.added, Variables::Inside(outer), inverses)?;
    let is_known = |step: &Step| matches!(step, Step::Known(_) | Step::Read(_));
    if !terms.steps.iter().any(is_known) {
        return Err("none of its data are known before the loops around it".to_owned());
    }
    let variables = terms.variables.len();
    if variables > MOST_VARIABLES {
        return Err(format!("there are {variables} variables in it, more than {MOST_VARIABLES}"));
    }
    if runs < RUNS * variables as u64 {
        return Err("the loops around it do not use such a sum often enough".to_owned());
    }
    // Iterations of loops around would be those of others.
    if terms.loops.len() > 1 {
        return Err("its data change with a loop around".to_owned());
    }
    let lines = Lines::of(terms);
    let sizes = Sizes::of(&lines)?;
    let basis = match lines.kind {
        Kind::Polynomial => {
            if zeros::may_be_lost(&lines) {
                return Err(zeros::LOST.to_owned());
            }
            let counts = (u64::from(chain.count), runs);
            Some(expand::basis(&lines, counts, limits.monomials, draft.all_forms)?)
        }
        Kind::Line | Kind::Square => None,
    };
    Ok(Fit { lines, sizes, basis })
}

/// A sum on its way out of the loops around.
pub(super) struct Sum<'a> {
    pub(super) draft: &'a mut Draft,
    pub(super) region: Region,
    /// The loop before which the data are summed up.
    pub(super) outer: Region,
    chain: &'a Chain,
    pub(super) lines: &'a Lines,
    basis: Option<&'a Basis>,
    /// The variables of the lines, before the loop.
    pub(super) variables: Vec<Node>,
}

/// The coordinates in which slopes are orthogonal.
pub(super) struct Coordinates {
    /// For each slope how much of it each later one has.
    pub(super) shear: Vec<Vec<Node>>,
    /// How much of each slope what does not depend on the variables has.
    shifts: Vec<Node>,
}

impl<'a> Sum<'a> {
    fn new(
        draft: &'a mut Draft,
        region: Region,
        outer: Region,
        chain: &'a Chain,
        fit: &'a Fit,
    ) -> Self {
        let variables = all_moved_out(draft, region, &fit.lines.terms.variables);
        let (lines, basis) = (&fit.lines, fit.basis.as_ref());
        Sum { draft, region, outer, chain, lines, basis, variables }
    }

    /// Inserts the loops over the data before `outer`, and the form before `region`.
    fn emit(mut self, sizes: Sizes) -> String {
        self.require_sizes(sizes);
        let form = match self.lines.kind {
            Kind::Line => self.line(),
            Kind::Square | Kind::Polynomial => self.around_pivot(),
        };
        let form = match self.draft.graph.constant(self.chain.first) {
            Some(0.0) => form,
            _ => self.before(Op::Add, &[self.chain.first, form]),
        };
        self.draft.forget_use(self.chain.first);
        self.chain.phis.iter().for_each(|&phi| self.draft.replace(phi, form));
        self.text()
    }

    /// The number of data.
    pub(super) fn count(&self) -> u32 {
        self.chain.count
    }

    /// The form of lines. Their coefficients are added up, and what they come to is computed,
    /// in pairs of numbers, so that what cancels needs no pivot.
    fn line(&mut self) -> Node {
        let body = self.begin(2 * (1 + self.variables.len()));
        let mut sums = vec![None; 1 + self.variables.len()];
        for row in self.lines.rows(self.draft, &body, self.region, None, true) {
            let mut steps = Steps { draft: self.draft, place: Place::In(&body) };
            for (sum, part) in sums.iter_mut().zip([row.value].into_iter().chain(row.slopes)) {
                *sum = steps.plus(*sum, part, true);
            }
        }
        let sums = self.end_pairs(&body, &sums);
        let mut steps = Steps { draft: self.draft, place: Place::Before(self.region) };
        let mut form = Some(sums[0]);
        for (&sum, &variable) in sums[1..].iter().zip(&self.variables) {
            let part = steps.product(sum, variable.into());
            form = steps.sum(form, Some(part));
        }
        form.map_or(sums[0].high, |form| steps.rounded(form))
    }

    /// The form of squares and polynomials, around where lines are smallest.
    fn around_pivot(&mut self) -> Node {
        let coordinates = self.orthogonal();
        let pivot = self.pivot(&coordinates);
        let quotients = coordinates.shear.iter().flatten().chain(&coordinates.shifts);
        self.require_quotients(quotients);
        match self.basis {
            Some(basis) => self.expanded(basis, &coordinates, &pivot),
            None => self.summed(&coordinates, &pivot),
        }
    }

    /// The form of squares.
    fn summed(&mut self, coordinates: &Coordinates, pivot: &[Node]) -> Node {
        let size = self.variables.len();
        let mut sums = vec![None; pairs(1 + size).count()];
        // Of several variables what is summed up goes into many coefficients, so it is
        // done in pairs of numbers.
        let precise = size > 1;
        let body = self.begin(if precise { 2 * sums.len() } else { sums.len() });
        for row in self.lines.rows(self.draft, &body, self.region, Some(pivot), precise) {
            let mut steps = Steps { draft: self.draft, place: Place::In(&body) };
            let slopes = reduced(&mut steps, &row, &coordinates.shear, size, precise).slopes;
            let slopes: Vec<Coefficient> = slopes.into_iter().map(|x| steps.once(x)).collect();
            // Those of the value and the slopes, and their products.
            let all: Vec<Coefficient> = [row.value].into_iter().chain(slopes).collect();
            for (a, b) in pairs(all.len()) {
                add_product(&mut steps, row.factor, all[a], all[b], &mut sums[at(a, b)]);
            }
        }
        let sums = match precise {
            true => self.end_pairs(&body, &sums),
            false => self.end(&body, &sums).into_iter().map(Pair::from).collect(),
        };
        let coordinates = match (self.variables.as_slice(), pivot) {
            (&[variable], &[pivot]) => vec![self.before(Op::Sub, &[variable, pivot])],
            _ => {
                let all = self.coordinates(pivot, &coordinates.shear);
                let mut steps = Steps { draft: self.draft, place: Place::Before(self.region) };
                all.into_iter().map(|coordinate| steps.rounded(coordinate)).collect()
            }
        };
        self.square(&sums, &coordinates)
    }

    /// Gram-Schmidt: one loop over the data for each variable.
    fn orthogonal(&mut self) -> Coordinates {
        let size = self.variables.len();
        let mut found = Coordinates { shear: Vec::new(), shifts: Vec::new() };
        let zero = self.draft.constant(0.0);
        if !self.lines.has_lines() {
            return Coordinates { shear: vec![vec![zero; size]; size], shifts: vec![zero; size] };
        }
        for slope in 0..size {
            // Its square, what it has in common with the value and later slopes, and
            // the square of what it was.
            let later = slope + 1..size;
            let body = self.begin(2 + later.len() + usize::from(slope > 0));
            let mut sums = vec![None; body.entries.len()];
            for row in self.lines.rows(self.draft, &body, self.region, None, false) {
                let mut steps = Steps { draft: self.draft, place: Place::In(&body) };
                let (first, factor) = (row.slopes[slope], row.factor);
                let row = reduced(&mut steps, &row, &found.shear, slope, false);
                let value = shifted(&mut steps, &row, &found.shifts);
                let own = row.slopes[slope];
                let others = later.clone().map(|other| row.slopes[other]);
                let others: Vec<Coefficient> = [own, value].into_iter().chain(others).collect();
                for (sum, &other) in sums.iter_mut().zip(&others) {
                    add_product(&mut steps, factor, own, other, sum);
                }
                if slope > 0 {
                    add_product(&mut steps, factor, first, first, &mut sums[others.len()]);
                }
            }
            let sums = self.end(&body, &sums);
            // Where the slope has no effect, or none of its own, any pivot is good.
            // One that is not finite stops the graph.
            let is_flat = match slope {
                0 => self.ahead(Op::Eq, &[sums[0], zero]),
                _ => {
                    let part = self.draft.constant(DEPENDENT);
                    let least = self.ahead(Op::Mul, &[part, sums[sums.len() - 1]]);
                    self.ahead(Op::Le, &[sums[0], least])
                }
            };
            let mut quotient = |sum: Node| {
                let quotient = self.ahead(Op::Div, &[sum, sums[0]]);
                self.ahead(Op::Select, &[is_flat, zero, quotient])
            };
            found.shifts.push(quotient(sums[1]));
            let mut shear = vec![zero; slope + 1];
            shear.extend(sums[2..][..later.len()].iter().map(|&sum| quotient(sum)));
            found.shear.push(shear);
        }
        found
    }

    /// Where the lines are smallest, by least squares.
    fn pivot(&mut self, coordinates: &Coordinates) -> Vec<Node> {
        let Coordinates { shear, shifts } = coordinates;
        let mut pivot: Vec<Node> = shifts.clone();
        if !self.lines.has_lines() {
            return pivot;
        }
        for variable in (0..pivot.len()).rev() {
            let mut value = self.ahead(Op::Neg, &[shifts[variable]]);
            for other in variable + 1..pivot.len() {
                let part = self.ahead(Op::Mul, &[shear[variable][other], pivot[other]]);
                value = self.ahead(Op::Sub, &[value, part]);
            }
            pivot[variable] = value;
        }
        pivot
    }

    /// Begins a loop over the data that adds up so many numbers.
    pub(super) fn begin(&mut self, sums: usize) -> Body {
        let zero = self.draft.constant(0.0);
        self.draft.begin_loop(self.outer, self.chain.count, &vec![zero; sums])
    }

    /// Ends a loop that adds these up.
    fn end(&mut self, body: &Body, added: &[Coefficient]) -> Vec<Node> {
        let mut steps = Steps { draft: self.draft, place: Place::In(body) };
        let mut nexts = Vec::new();
        for (&entry, &added) in body.entries.iter().zip(added) {
            let next = steps.plus(Some(entry.into()), added, false);
            nexts.push(next.map_or(entry, |next| next.high));
        }
        self.draft.end_loop(body, &nexts)
    }

    /// Ends a loop that adds these up in pairs of numbers, with two entry φs for each sum.
    pub(super) fn end_pairs(&mut self, body: &Body, added: &[Coefficient]) -> Vec<Pair> {
        let mut steps = Steps { draft: self.draft, place: Place::In(body) };
        let mut nexts = Vec::new();
        for (entry, &added) in body.entries.chunks(2).zip(added) {
            let sum = Pair { high: entry[0], low: entry.get(1).copied() };
            let next = steps.plus(Some(sum), added, true).unwrap_or(sum);
            nexts.push(next.high);
            nexts.extend(entry.get(1).map(|&low| next.low.unwrap_or(low)));
        }
        let sums = self.draft.end_loop(body, &nexts);
        let mut steps = Steps { draft: self.draft, place: Place::Before(self.outer) };
        let pair = |sum: &[Node]| steps.normal(Pair { high: sum[0], low: sum.get(1).copied() });
        sums.chunks(2).map(pair).collect()
    }

    /// What the slopes of orthogonal rows are multiplied by.
    pub(super) fn coordinates(&mut self, pivot: &[Node], shear: &[Vec<Node>]) -> Vec<Pair> {
        let place = Place::Before(self.region);
        let mut steps = Steps { draft: self.draft, place };
        let mut differences: Vec<Pair> = Vec::new();
        for (&variable, &pivot) in self.variables.iter().zip(pivot) {
            let negative =
                (steps.value(pivot) != Some(0.0)).then(|| steps.apply(Op::Neg, &[pivot]).into());
            let difference = steps.sum(Some(variable.into()), negative);
            differences.push(difference.unwrap_or(variable.into()));
        }
        let coordinate = |(number, &difference): (usize, &Pair)| {
            let mut sum = difference;
            for other in number + 1..differences.len() {
                let factor = shear[number][other];
                let part = (steps.value(factor) != Some(0.0))
                    .then(|| steps.product(factor.into(), differences[other]));
                sum = steps.sum(Some(sum), part).unwrap_or(sum);
            }
            sum
        };
        differences.iter().enumerate().map(coordinate).collect()
    }

    fn square(&mut self, sums: &[Pair], coordinates: &[Node]) -> Node {
        let sums: Vec<Node> = sums.iter().map(|sum| sum.high).collect();
        let two = self.draft.constant(2.0);
        let mut form = sums[at(0, 0)];
        for (number, &coordinate) in coordinates.iter().enumerate() {
            // Twice what it has in common with the value and the ones before, and
            // once its square.
            let mut common = sums[at(0, 1 + number)];
            for (before, &other) in coordinates[..number].iter().enumerate() {
                let part = self.before(Op::Mul, &[sums[at(1 + before, 1 + number)], other]);
                common = self.before(Op::Add, &[part, common]);
            }
            let common = self.before(Op::Mul, &[two, common]);
            let square = self.before(Op::Mul, &[sums[at(1 + number, 1 + number)], coordinate]);
            let slope = self.before(Op::Add, &[square, common]);
            let part = self.before(Op::Mul, &[slope, coordinate]);
            form = self.before(Op::Add, &[part, form]);
        }
        form
    }

    /// An application before the loops around.
    fn ahead(&mut self, op: Op, args: &[Node]) -> Node {
        self.draft.apply(self.outer, op, args)
    }

    /// An application before the loop that is replaced.
    fn before(&mut self, op: Op, args: &[Node]) -> Node {
        self.draft.apply(self.region, op, args)
    }

    /// The form in mathematical notation.
    fn text(&self) -> String {
        const NAMES: [&str; MOST_VARIABLES] = ["u", "v", "w"];
        let count = self.chain.count;
        let brief = Brief::new(&self.draft.graph);
        let known = NAMES.iter().zip(&self.variables);
        let known = known.map(|(name, &variable)| format!("{name} = {}", brief.node(variable)));
        let known: Vec<String> = known.collect();
        if self.variables.is_empty() {
            return format!(
                "Σ_{{i<{count}}} g(i) = S0, where g(i) is what is added, known before the loops around"
            );
        }
        let (form, rest) = match (self.variables.len(), self.lines.kind) {
            (1, Kind::Line) => ("S0 + S1·u", ""),
            (2, Kind::Line) => ("S0 + S1·u + S2·v", ""),
            (_, Kind::Line) => ("S0 + S1·u + S2·v + S3·w", ""),
            (1, Kind::Square) => ("S0 + S1·(u − u₀) + S2·(u − u₀)^2", "u₀ and "),
            (1, Kind::Polynomial) => ("Σ_k S(k)·(u − u₀)^k", "u₀ and "),
            (_, Kind::Polynomial) => ("Σ_k S(k)·y^k", "the coordinates y and "),
            (_, Kind::Square) => {
                ("S0 + Σ_j S1(j)·y(j) + Σ_j S2(j)·y(j)^2", "the coordinates y and ")
            }
        };
        format!(
            "Σ_{{i<{count}}} g(i) = {form}, where g(i) is what is added, {}, and {rest}the \
             sums over the data are known before the loops around",
            known.join(", ")
        )
    }
}

/// The pairs of so many numbers, each with itself and those after it.
fn pairs(size: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..size).flat_map(move |a| (a..size).map(move |b| (a, b)))
}

/// The place of a pair among those of any number of numbers.
fn at(a: usize, b: usize) -> usize {
    b * (b + 1) / 2 + a
}

/// `row`, with what its slopes have of the first `count` ones taken away.
fn reduced(
    steps: &mut Steps<'_>,
    row: &Row,
    shear: &[Vec<Node>],
    count: usize,
    precise: bool,
) -> Row {
    let mut slopes = row.slopes.clone();
    for (first, shear) in shear.iter().enumerate().take(count) {
        for other in first + 1..slopes.len() {
            let part = steps.times(Some(shear[other].into()), slopes[first], precise);
            slopes[other] = steps.minus(slopes[other], part, precise);
        }
    }
    Row { factor: row.factor, value: row.value, slopes }
}

/// The value of a reduced row, with what it has of slopes taken away.
fn shifted(steps: &mut Steps<'_>, row: &Row, shifts: &[Node]) -> Coefficient {
    let mut value = row.value;
    for (&shift, &slope) in shifts.iter().zip(&row.slopes) {
        let part = steps.times(Some(shift.into()), slope, false);
        value = steps.minus(value, part, false);
    }
    value
}

/// Adds `factor · a · b` to `sum`.
fn add_product(
    steps: &mut Steps<'_>,
    factor: f64,
    a: Coefficient,
    b: Coefficient,
    sum: &mut Coefficient,
) {
    let product = steps.times(a, b, false);
    let factor = steps.constant(factor);
    let part = steps.times(Some(factor.into()), product, false);
    *sum = steps.plus(*sum, part, false);
}
