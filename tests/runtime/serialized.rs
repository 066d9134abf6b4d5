//! Serialised reports: fields and names.

use phigrad::{Tape, Var};

#[test]
fn the_json_of_a_report_has_the_facts_of_its_text() {
    let f = Tape::builder()
        .hot_threshold(u32::MAX)
        .record(|x: &[Var]| if x[0] > 1.0 { x[0] } else { -x[0] });
    f.grad(&[1.25]).unwrap();
    f.compile().unwrap();
    f.grad(&[-3.0]).unwrap();
    let json = serde_json::to_value(f.report()).unwrap();
    assert_eq!(json["tape_calls"], 2);
    assert_eq!(json["fallbacks"], 1);
    assert_eq!(json["kernels"][1]["purpose"], "Gradient");
    let decision = &json["decisions"][0];
    assert_eq!(decision["decision"]["op"], "gt");
    assert_eq!(decision["decision"]["held"], 1);
    assert_eq!(decision["decision"]["failed"], 1);
    assert_eq!(decision["decision"]["margin"], 0.25);
    assert_eq!(decision["side_exits"], 1);
    let last = &json["last_side_exit"];
    assert_eq!(
        (&last["op"], &last["held"], &last["at"]["line"]),
        (&"gt".into(), &false.into(), &decision["decision"]["at"]["line"])
    );
    let waiting = &json["waiting"][0];
    assert_eq!(
        (&waiting["purpose"], &waiting["wait"], &waiting["replaces"]),
        (&"Gradient".into(), &"Compile".into(), &true.into())
    );
    let line = decision["decision"]["at"]["line"].as_u64().unwrap();
    assert!(f.report().to_string().contains(&format!("serialized.rs:{line}:")));
}
