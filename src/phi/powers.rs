//! Integer powers in loops: with exponents that are numbers like others.
//!
//! The exponent of `powi` is a part of the operation, so xⁱ is another operation in each
//! iteration, and no loop is made of them. As powers with real exponents they are the same
//! numbers but for rounding, also of negative numbers. Such powers take longer, and are of
//! use only where a closed form of the loop is found that has none.

use hashbrown::HashMap;

use crate::op::Op;
use crate::ssa::{Def, Graph, Node, Place, PlaceId};

/// From so many powers at one place on they may be those of a loop.
const FEWEST_POWERS: usize = 32;

/// A graph some of whose integer powers have real exponents.
#[derive(Clone, Debug)]
pub struct RealExponents {
    /// The graph.
    pub graph: Graph,
    /// Where these powers are.
    places: Vec<Place>,
}

impl RealExponents {
    /// `graph` with real exponents where powers to several integers are taken at one place
    /// of the source; `None` if that is nowhere.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::phi::RealExponents;
    /// use phigrad::ssa::Graph;
    ///
    /// assert!(RealExponents::of(&Graph::new(1, 0)).is_none());
    /// ```
    #[must_use]
    pub fn of(graph: &Graph) -> Option<RealExponents> {
        let mut found: HashMap<PlaceId, (Vec<Node>, Node, bool)> = HashMap::new();
        for (node, data) in graph.nodes.iter() {
            if let (Def::Apply(Op::Powi, [_, exponent, _]), Some(place)) = (data.def, data.place) {
                let of_place = || (Vec::new(), exponent, false);
                let (nodes, first, differ) = found.entry(place).or_insert_with(of_place);
                nodes.push(node);
                *differ |= graph.constant(*first) != graph.constant(exponent);
            }
        }
        found.retain(|_, (nodes, _, differ)| *differ && nodes.len() >= FEWEST_POWERS);
        let mut places: Vec<PlaceId> = found.keys().copied().collect();
        places.sort_unstable();
        let places = places.into_iter().filter_map(|place| graph.places.get(place).cloned());
        let places: Vec<Place> = places.collect();
        if places.is_empty() {
            return None;
        }
        let mut graph = graph.clone();
        for &node in found.values().flat_map(|(nodes, ..)| nodes) {
            if let Def::Apply(_, args) = graph.nodes[node].def {
                graph.nodes[node].def = Def::Apply(Op::Powf, args);
            }
        }
        Some(RealExponents { graph, places })
    }

    /// `closed`, which was made of the graph, with integer powers again; `None` if there are
    /// some whose exponents change, or are none that an integer power may have.
    ///
    /// # Examples
    ///
    /// ```
    /// use phigrad::op::Op;
    /// use phigrad::phi::RealExponents;
    /// use phigrad::ssa::{End, Graph, Place};
    ///
    /// // x + x² + … + x⁵⁰, each power at the same place
    /// let mut graph = Graph::new(1, 0);
    /// let (root, x) = (graph.root(), graph.input(0));
    /// let place = graph.places.push(Place { file: "sum.rs".into(), line: 1, column: 1, nth: 0 });
    /// let mut sum = x;
    /// for exponent in 2..=50 {
    ///     let exponent = graph.push_const(f64::from(exponent).to_bits());
    ///     let power = graph.push_apply(root, Op::Powi, &[x, exponent], Some(place));
    ///     sum = graph.push_apply(root, Op::Add, &[sum, power], None);
    /// }
    /// graph.blocks[root].end = End::Return([sum].into_iter().collect());
    ///
    /// let real = RealExponents::of(&graph).expect("there are many");
    /// assert!(real.graph.to_string().contains("powf"));
    /// // None of them is in a loop.
    /// assert_eq!(real.undone(&real.graph).map(|it| it.to_string()), Some(graph.to_string()));
    /// ```
    #[must_use]
    pub fn undone(&self, closed: &Graph) -> Option<Graph> {
        let mut graph = closed.clone();
        for (node, data) in closed.nodes.iter() {
            let Def::Apply(Op::Powf, args) = data.def else { continue };
            let place = data.place.and_then(|place| closed.places.get(place));
            if place.is_some_and(|place| !self.places.contains(place)) {
                continue;
            }
            let is_integer = |x: f64| x.fract() == 0.0 && x.abs() <= f64::from(i32::MAX);
            let is_integer = closed.constant(args[1]).is_some_and(is_integer);
            if place.is_none() || !is_integer {
                return None;
            }
            graph.nodes[node].def = Def::Apply(Op::Powi, args);
        }
        Some(graph)
    }
}
