//! Loops of one place in the source, as of a function that is called twice, are numbered.

use hashbrown::HashMap;

use super::{Notation, loops, regions_of_loops};
use crate::ssa::{Graph, Place};

/// Numbers the places of loops that have the same place and are told differently, so that what is
/// said of one of them is not said of all.
pub(crate) fn number_loops(graph: &mut Graph) {
    let mut known: HashMap<Place, Vec<Notation>> = HashMap::new();
    for (region, told) in regions_of_loops(graph).into_iter().zip(loops(graph)) {
        let Some(at) = told.at else { continue };
        let all = known.entry(at.clone()).or_default();
        let number = all.iter().position(|other| *other == told.notation).unwrap_or_else(|| {
            all.push(told.notation);
            all.len() - 1
        });
        if number > 0 {
            let nth = u32::try_from(number).unwrap_or(u32::MAX);
            let place = graph.places.push(Place { nth, ..at });
            graph.move_region(region, place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssa::parse;

    /// Three loops of one place, each of which begins with one input and multiplies by the other.
    fn calls(inputs: [[&str; 2]; 3]) -> Graph {
        let (mut root, mut bodies) = (String::new(), String::new());
        for (k, [first, factor]) in inputs.into_iter().enumerate() {
            let [carried, counter, less, next, out] = [4, 5, 6, 7, 8].map(|id| id + 5 * k);
            let body = k + 1;
            root.push_str(&format!(
                "  v{out} = region r{k} b{body} bound 10 entries v{carried}={first} @ user.rs:2:5\n"
            ));
            bodies.push_str(&format!(
                "b{body}:\n  v{counter} = iteration r{k}\n  v{less} = lt v{counter} v2\n  \
                 v{next} = mul v{carried} {factor}\n  return v{less} v{next} v{carried}\n"
            ));
        }
        let text = format!(
            "graph active 2 inactive 0\nv2 = const 3.0\nv3 = const 1.0\nb0:\n{root}  \
             v19 = add v8 v13\n  v20 = add v19 v18\n  return v20\n{bodies}"
        );
        parse(&text).unwrap()
    }

    #[test]
    fn loops_of_one_place_that_differ_are_numbered() {
        let mut graph = calls([["v0", "v1"], ["v1", "v0"], ["v1", "v0"]]);
        number_loops(&mut graph);
        let places: Vec<String> =
            loops(&graph).iter().map(|t| t.at.as_ref().unwrap().to_string()).collect();
        assert_eq!(places, ["user.rs:2:5", "user.rs:2:5#2", "user.rs:2:5#3"]);
        let text = graph.to_string();
        assert_eq!(parse(&text).unwrap().to_string(), text);
    }
}
