//! Products of what is data with what is invariant: C8, as a product of numbers and a
//! power, which is a loop of its own that C6 closes.

use core::ops::RangeInclusive;

use super::functions::{Factors, Product, close_exponentials, invariants, taken_apart, values};
use crate::op::Op;
use crate::phi::close::CloseLimits;
use crate::phi::double::Double;
use crate::phi::draft::Draft;
use crate::phi::notation::{Brief, number};
use crate::ssa::{Def, End, Node, Region};

/// What is multiplied by at most so much loses no digits beside a power.
const LARGE: f64 = 1e100;
/// What has such a size neither overflows nor loses digits beside a few factors.
pub(super) const SIZES: RangeInclusive<f64> = 1e-200..=1e200;
/// Replaces products of `region`, a loop; returns their forms.
pub(super) fn close_products(
    draft: &mut Draft,
    region: Region,
    limits: &CloseLimits,
) -> Vec<String> {
    let chains = chains(draft, region).unwrap_or_default();
    let form = |chain: Product| {
        let closed = close(draft, region, &chain);
        closed.or_else(|| close_exponentials(draft, region, &chain, limits))
    };
    chains.into_iter().filter_map(form).collect()
}

fn chains(draft: &Draft, region: Region) -> Option<Vec<Product>> {
    let data = &draft.graph.regions[region];
    let End::Return(values) = &draft.graph.blocks[data.root].end else { return None };
    let values: Vec<Node> = values.iter().map(|&value| draft.resolve(value)).collect();
    let count = draft.trips(region, values[0])?;
    let (decides, nexts) = draft.graph.passed_before_phis(region);
    let mut chains = Vec::new();
    for (entry, &next) in draft.graph.entries(region).iter().zip(&values[decides..]) {
        let ends = data.phis.iter().zip(&values[decides + nexts..]);
        let ends = ends.filter(|&(&phi, &value)| value == next && draft.resolve(phi) == phi);
        let phis: Vec<Node> = ends.map(|(&phi, _)| phi).collect();
        let passed = values.iter().filter(|&&value| value == next).count() as u32;
        if let Some(factors) = factors(draft, entry.phi, next, passed).filter(|_| !phis.is_empty())
        {
            chains.push(Product { phis, first: draft.resolve(entry.first), factors, count });
        }
    }
    Some(chains)
}

/// What `entry` is multiplied by on the way to `next`, which `passed` ends pass on.
fn factors(draft: &Draft, entry: Node, next: Node, passed: u32) -> Option<Vec<(bool, Node)>> {
    let (mut factors, mut product) = (Vec::new(), entry);
    while product != next {
        let user = draft.only_user(product)?;
        let args: Vec<Node> = draft.args(user).collect();
        let Def::Apply(op, _) = draft.graph.nodes[user].def else { return None };
        match (op, args.as_slice()) {
            (Op::Mul, &[a, b]) => factors.push((false, if a == product { b } else { a })),
            (Op::Div, &[a, b]) if a == product => factors.push((true, b)),
            _ => return None,
        }
        product = user;
    }
    (!factors.is_empty() && draft.uses(next) == passed).then_some(factors)
}

/// What the numbers among the factors come to in all iterations, and the other factors.
struct Parts {
    data: Double,
    invariant: Factors,
}

/// The factors of one iteration, taken apart.
fn parts(draft: &Draft, region: Region, chain: &Product) -> Option<Parts> {
    let (sign, all) = taken_apart(draft, region, chain.factors.clone())?;
    let (numbers, invariant): (Factors, Factors) =
        all.into_iter().partition(|&(_, node)| draft.folds(node));
    // Otherwise it is a recurrence with coefficients of one kind.
    let changes = numbers.iter().any(|&(_, node)| draft.graph.constant(node).is_none());
    if !changes || invariant.is_empty() {
        return None;
    }
    // All factors of an iteration come together, so that nothing on the way is too large.
    let mut each = vec![Double::from(sign); chain.count as usize];
    for (inverse, node) in numbers {
        let values = values(draft, region, node, chain.count)?;
        for (product, factor) in each.iter_mut().zip(values) {
            *product = if inverse { *product / factor } else { *product * factor };
        }
    }
    let data = each.into_iter().fold(Double::from(1.0), |data, factor| data * factor);
    let fits = (1.0 / LARGE..LARGE).contains(&data.high.abs());
    let is_invariant =
        |&(_, node): &(bool, Node)| super::inverses::is_invariant(draft, region, node);
    (fits && invariant.iter().all(is_invariant)).then_some(Parts { data, invariant })
}

fn close(draft: &mut Draft, region: Region, chain: &Product) -> Option<String> {
    let Parts { data, invariant } = parts(draft, region, chain)?;
    let base = invariants(draft, region, invariant)?;
    // From there on it goes to what it comes to in equal steps, so nothing on the way is
    // too large or too small if that is not; but what it begins with may be.
    let first = match draft.graph.constant(chain.first) {
        Some(first) if !SIZES.contains(&(first * data.rounded()).abs()) => return None,
        Some(first) => draft.constant(first * data.rounded()),
        None => {
            let factor = draft.constant(data.rounded());
            let first = draft.apply(region, Op::Mul, &[chain.first, factor]);
            draft.require_size(region, first, *SIZES.start(), *SIZES.end());
            first
        }
    };
    let body = draft.begin_loop(region, chain.count, &[first]);
    let product = draft.step(&body, Def::Apply(Op::Mul, [body.entries[0], base, base]));
    let power = draft.end_loop(&body, &[product])[0];
    let brief = Brief::new(&draft.graph);
    let (count, data) = (chain.count, number(data.rounded()));
    let (first, base) = (brief.node(chain.first), brief.node(base));
    let form = format!(
        "p·Π_{{i<{count}}} g(i) = p·{data}·u^{count}, where g(i) is what is multiplied by, \
         u = {base}, p = {first}"
    );
    draft.forget_use(chain.first);
    chain.phis.iter().for_each(|&phi| draft.replace(phi, power));
    Some(form)
}
