//! The marks of annotated functions, their places and the carried values.
#![allow(clippy::assign_op_pattern)] // As programs for other number types are written.

use std::panic::Location;

use phigrad::internals::trace::{Inputs, Operand, Role, Trace, Tracer};
use phigrad::{Carry, Var, traced};

/// Runs `f` at `x` and calls `look` with the tape.
fn with_trace<R>(f: impl Fn(&[Var]) -> Var, x: &[f64], look: impl FnOnce(&Trace<'_>) -> R) -> R {
    let inputs = Inputs { active: x, inactive: &[] };
    let mut tracer = Tracer::default();
    look(&tracer.run(|x, _| f(x), inputs, 10_000, Location::caller()).unwrap())
}

/// The marks of a run, one word each: `enter1`, `iterate1`, `join1`, `phi` (of an
/// event), `phi=3` (of a constant), `state=3`, `names_input`, `opaque:name`; `guard` in between.
fn marks(f: impl Fn(&[Var]) -> Var, x: &[f64]) -> String {
    with_trace(f, x, |trace| {
        let mut words = Vec::new();
        for (index, event) in trace.events.iter().enumerate() {
            words.push(match event.role() {
                Role::Enter => format!("enter{}", event.payload()),
                Role::Iterate => format!("iterate{}", event.payload()),
                Role::Join => format!("join{}", event.payload()),
                // A hash of several words.
                Role::State if event.payload() > 1 << 32 => "state=#".into(),
                Role::State => format!("state={}", event.payload()),
                Role::NamesInput => "names_input".into(),
                Role::Phi => match event.operands().next() {
                    Some(Operand::Constant(value)) => format!("phi={value}"),
                    _ => "phi".into(),
                },
                Role::Opaque => {
                    let named = trace.opaque.iter().find(|(at, _)| *at as usize == index);
                    format!("opaque:{}", named.unwrap().1)
                }
                Role::Guard => "guard".into(),
                Role::ActiveInput | Role::InactiveInput | Role::Constant => continue,
                Role::Apply | Role::Argument | Role::Output => continue,
            });
        }
        words.join(" ")
    })
}

#[traced]
fn branch(x: &[Var]) -> Var {
    let mut y = x[0];
    if y > 0.0 {
        y = y * 2.0;
    }
    y + 1.0
}

#[test]
fn a_branch_carries_what_it_assigns() {
    // The function ends with a single path, so its result is not carried.
    let expected = "enter1 enter2 guard join2 phi join1";
    assert_eq!(marks(branch, &[1.0]), expected);
    assert_eq!(marks(branch, &[-1.0]), expected);
}

#[traced]
fn chosen(x: &[Var]) -> Var {
    let y = if x[0] > 0.0 { x[0] * x[0] } else { Var::from(3.0) };
    let n = if x[0] > 1.0 { 1 } else { 2 };
    y * f64::from(n)
}

#[test]
fn the_value_of_a_branch_is_carried() {
    let path = |y: &str, n: u8| {
        format!("enter1 enter2 guard join2 {y} enter3 guard join3 state={n} join1 phi")
    };
    assert_eq!(marks(chosen, &[2.0]), path("phi", 1));
    assert_eq!(marks(chosen, &[-1.0]), path("phi=3", 2));
}

#[traced]
fn looped(x: &[Var]) -> Var {
    let mut sum = Var::from(0.5);
    let mut count = 0;
    while sum < x[0] {
        sum += 1.0;
        count += 1;
    }
    sum * f64::from(count)
}

#[test]
fn a_loop_carries_at_its_heads_before_the_condition() {
    assert_eq!(
        marks(looped, &[1.0]),
        "enter1 enter2 iterate2 guard iterate2 phi=1.5 state=# guard join2 phi phi=1 guard guard guard join1 \
         phi"
    );
}

#[traced]
fn counted(x: &[Var]) -> Var {
    let mut sum = x[0];
    for i in 0..2 {
        if sum > 5.0 {
            continue;
        }
        sum = sum * f64::from(i);
    }
    sum
}

#[test]
fn an_exhausted_loop_has_its_join_alone() {
    assert_eq!(
        marks(counted, &[1.0]),
        "enter1 enter2 iterate2 phi enter3 guard join3 iterate2 phi enter4 guard join4 join2 phi \
         join1 phi"
    );
    // `continue` leaves the branch, which ends with the next head.
    assert_eq!(
        marks(counted, &[9.0]),
        "enter1 enter2 iterate2 phi enter3 guard iterate2 phi enter4 guard join2 phi join1 phi"
    );
}

#[traced]
fn early(x: &[Var]) -> Var {
    for v in x {
        if *v > 1.0 {
            return *v * 2.0;
        }
    }
    x[0]
}

#[test]
fn a_return_joins_the_function() {
    assert_eq!(marks(early, &[3.0]), "enter1 enter2 iterate2 enter3 guard join1 phi");
    assert_eq!(marks(early, &[0.0]), "enter1 enter2 iterate2 enter3 guard join3 join2 join1 phi");
}

#[traced]
fn asked(x: &[Var]) -> Var {
    #[traced]
    fn root(x: Var) -> Option<Var> {
        let y = positive(x)?;
        Some(y.sqrt())
    }
    fn positive(x: Var) -> Option<Var> {
        (x > 0.0).then_some(x)
    }
    root(x[0]).unwrap_or(x[0])
}

#[test]
fn a_question_mark_joins_the_function() {
    assert_eq!(marks(asked, &[4.0]), "enter1 enter2 guard join2 state=1 phi join1 phi");
    // The number of the question mark.
    assert_eq!(marks(asked, &[-4.0]), "enter1 enter2 guard join2 state=1 join1 phi");
}

#[traced]
fn logical(x: &[Var]) -> Var {
    let inside = x[0] > 0.0 && x[0] < 1.0;
    if inside && x[0] < 0.5 { x[0] } else { x[0] * 2.0 }
}

#[test]
fn a_chain_of_and_outside_conditions_is_a_region() {
    let path = "enter1 enter2 guard guard join2 state=1 enter3 guard join3 phi join1 phi";
    assert_eq!(marks(logical, &[0.25]), path);
    // No guard in the second region, so it has a single path.
    let path = "enter1 enter2 guard join2 state=0 enter3 join3 join1 phi";
    assert_eq!(marks(logical, &[-0.25]), path);
}

#[derive(Clone, Copy, Carry)]
struct Ball {
    height: Var,
    speed: Var,
    bounces: u32,
}

#[derive(Clone, Carry)]
enum Phase {
    Rest,
    Moving { balls: Vec<Ball> },
    Named(&'static str, Var),
}

#[traced]
fn step(ball: &mut Ball, dt: f64) {
    ball.height += ball.speed * dt;
    if ball.height < 0.0 {
        ball.height = -ball.height;
        ball.bounces += 1;
    }
}

fn stepped(x: &[Var]) -> Var {
    let mut ball = Ball { height: x[0], speed: x[1], bounces: 7 };
    step(&mut ball, 0.5);
    ball.height
}

#[test]
fn changed_fields_behind_a_reference_are_carried_where_the_function_ends() {
    // The speed does not change.
    assert_eq!(
        marks(stepped, &[1.0, 0.0]),
        "enter1 enter2 guard join2 phi state=7 join1 phi state=7"
    );
    assert_eq!(
        marks(stepped, &[1.0, -4.0]),
        "enter1 enter2 guard join2 phi state=8 join1 phi state=8"
    );
}

#[traced]
fn variants(x: &[Var]) -> Var {
    let mut phase = Phase::Rest;
    if x[0] > 0.0 {
        let ball = Ball { height: x[0], speed: x[0], bounces: 0 };
        phase = Phase::Moving { balls: vec![ball] };
    }
    if x[0] > 1.0 {
        phase = Phase::Named("", x[0]);
    }
    match phase {
        Phase::Rest => x[0],
        Phase::Moving { balls } => balls[0].height * balls[0].speed,
        Phase::Named(name, value) => value * name.len() as f64,
    }
}

#[test]
fn an_enum_is_its_variant_and_its_content() {
    let path = marks(variants, &[-1.0]);
    assert!(path.starts_with("enter1 enter2 guard join2 state=0 enter3"), "{path}");
    let path = marks(variants, &[2.0]);
    assert!(path.contains(" phi state=0 enter3 guard join3 state="), "{path}");
}

struct Unknown {
    seen: Vec<Var>,
}

#[traced]
fn hidden(x: &[Var]) -> Var {
    let mut unknown = Unknown { seen: Vec::new() };
    let mut sum = x[0];
    if sum > 0.0 {
        unknown.add(sum);
        sum = sum * 2.0;
    }
    sum + unknown.seen.len() as f64
}

impl Unknown {
    fn add(&mut self, sum: Var) {
        self.seen.push(sum);
    }
}

#[test]
fn a_variable_without_carry_is_opaque_and_named() {
    assert_eq!(marks(hidden, &[1.0]), "enter1 enter2 guard join2 phi opaque:unknown join1 phi");
}

#[test]
fn fields_are_carried_by_themselves_unless_the_whole_may_change() {
    struct Nested {
        pair: (Var, Var),
        ball: Ball,
        other: Unknown,
    }
    #[traced]
    fn fields(x: &[Var], whole: bool) -> Var {
        let ball = Ball { height: x[0], speed: x[1], bounces: 3 };
        let mut all = Nested { pair: (x[0], x[1]), ball, other: Unknown { seen: x.to_vec() } };
        if x[0] > 0.0 {
            all.ball.height = x[1];
            all.pair.1 += 1.0;
            if whole {
                all.ball = Ball { bounces: 4, ..all.ball };
            }
        }
        all.pair.1 + all.ball.height * all.ball.bounces as f64 + all.other.seen.len() as f64
    }
    // A field of a field is carried with it: the text decides, not the path.
    let expected = "enter1 enter2 guard enter3 join3 join2 phi phi phi state=3 join1 phi";
    assert_eq!(marks(|x| fields(x, false), &[1.0, 2.0]), expected);
    assert_eq!(marks(|x| fields(x, true), &[1.0, 2.0]), expected.replace("state=3", "state=4"));
    #[traced]
    fn one(x: &[Var]) -> Var {
        let ball = Ball { height: x[0], speed: x[1], bounces: 3 };
        let mut all = Nested { pair: (x[0], x[1]), ball, other: Unknown { seen: x.to_vec() } };
        if x[0] > 0.0 {
            all.ball.height = x[1];
            all.pair.1 += 1.0;
        }
        all.pair.1 + all.ball.height * all.ball.bounces as f64 + all.other.seen.len() as f64
    }
    assert_eq!(marks(one, &[1.0, 2.0]), "enter1 enter2 guard join2 phi phi join1");
    assert_eq!(marks(one, &[-1.0, 2.0]), "enter1 enter2 guard join2 phi phi join1");
}

#[traced(opaque(sum))]
fn named_opaque(x: &[Var]) -> Var {
    let mut sum = x[0];
    if sum > 0.0 {
        sum += 1.0;
    }
    sum
}

#[test]
fn the_attribute_makes_a_variable_opaque() {
    assert_eq!(marks(named_opaque, &[1.0]), "enter1 enter2 guard join2 opaque:sum join1 phi");
}

#[traced]
fn elements(x: &[Var]) -> Var {
    let mut all = x.to_vec();
    for element in all.iter_mut() {
        if *element < 0.0 {
            continue;
        }
        *element += 1.0;
    }
    all[0] * all[1]
}

#[test]
fn elements_changed_by_a_loop_are_carried_in_its_body_and_at_its_join() {
    assert_eq!(
        marks(elements, &[1.0, -1.0]),
        "enter1 enter2 iterate2 enter3 enter4 guard join4 join3 phi iterate2 enter5 enter6 guard \
         join5 phi join2 state=2 phi phi join1 phi"
    );
}

fn helper(target: &mut Var, x: Var) {
    *target += x;
}

#[traced]
fn lent(x: &[Var]) -> Var {
    let mut pair = (x[0], x[1]);
    let (a, _) = &mut pair;
    if x[0] > 0.0 {
        helper(a, x[1]);
    }
    pair.0 * pair.1
}

#[test]
fn a_reference_that_is_lent_on_is_opaque() {
    let path = marks(lent, &[1.0, 2.0]);
    assert_eq!(path, "enter1 enter2 guard join2 opaque:a join1 phi");
}

#[traced]
fn computed(x: &[Var]) -> Var {
    let mut sum = Var::from(0.0);
    for y in x.iter().map(|v| if *v > 0.0 { *v } else { -*v }) {
        sum += y;
    }
    for y in x.iter().filter(|v| **v > 0.0) {
        sum += *y;
    }
    sum
}

#[test]
fn items_that_are_computed_are_carried_and_unknown_iterators_are_opaque() {
    assert_eq!(
        marks(computed, &[1.0]),
        "enter1 enter2 guard iterate2 phi phi=0 join2 enter3 guard iterate3 state=# \
         names_input opaque:iterator of the loop phi join3 phi join1"
    );
}

#[test]
fn the_place_of_a_mark_is_the_keyword() {
    with_trace(looped, &[1.0], |trace| {
        let text = std::fs::read_to_string(file!()).unwrap();
        let mut words = Vec::new();
        for event in trace.events.iter().filter(|event| event.role() == Role::Enter) {
            let line = text.lines().nth(event.site().line() as usize - 1).unwrap();
            words.push(line[event.site().column() as usize - 1..].split(' ').next().unwrap());
        }
        assert_eq!(words, ["fn", "while"]);
        for event in trace.events.iter().filter(|e| matches!(e.role(), Role::Join | Role::Iterate))
        {
            let enter = trace
                .events
                .iter()
                .find(|other| other.role() == Role::Enter && other.payload() == event.payload());
            assert_eq!(enter.unwrap().site(), event.site());
        }
    });
}

#[test]
fn marks_count_towards_the_limit() {
    let inputs = Inputs { active: &[1.0], inactive: &[] };
    let mut tracer = Tracer::default();
    let run = |tracer: &mut Tracer, limit| {
        let trace = tracer.run(|x, _| branch(x), inputs, limit, Location::caller());
        trace.map(|trace| trace.events.len())
    };
    assert_eq!(run(&mut tracer, 100), Ok(9));
    assert_eq!(run(&mut tracer, 8), Ok(9));
    for limit in 0..8 {
        assert!(run(&mut tracer, limit).is_err());
    }
}

#[test]
fn outside_of_a_recording_nothing_happens() {
    let x = [Var::from(2.0), Var::from(3.0)];
    assert_eq!(branch(&x).value(), 5.0);
    assert_eq!(elements(&x).value(), 12.0);
}

#[test]
fn each_recording_has_its_own_region_ids() {
    let f = |x: &[Var]| {
        let y = branch(x);
        let inner = marks(branch, &[1.0]);
        assert!(inner.starts_with("enter1 enter2"), "{inner}");
        branch(&[y])
    };
    let path = marks(f, &[1.0]);
    assert!(path.contains("enter3 enter4"), "{path}");
}

#[traced]
fn without_guards(x: &[Var], steps: usize) -> Var {
    let mut y = x[0];
    for i in 0..steps {
        if i % 2 == 0 {
            y += 1.0;
        }
    }
    y
}

#[test]
fn without_guards_nothing_is_carried() {
    assert_eq!(
        marks(|x| without_guards(x, 2), &[1.0]),
        "enter1 enter2 iterate2 enter3 join3 iterate2 enter4 join4 join2 join1"
    );
    with_trace(branch, &[1.0], |trace| {
        let joins = trace.events.iter().filter(|event| event.role() == Role::Join);
        assert!(joins.map(|event| event.has_single_path()).eq([false, true]));
    });
}

#[test]
fn an_inner_recording_does_not_change_the_open_guards() {
    #[traced]
    fn f(x: &[Var]) -> Var {
        let mut y = x[0];
        if y > 0.0 {
            assert_eq!(marks(branch, &[1.0]), "enter1 enter2 guard join2 phi join1");
            y = y * 2.0;
        }
        y
    }
    assert_eq!(marks(f, &[1.0]), "enter1 enter2 guard join2 phi join1");
}

#[cfg(feature = "nalgebra")]
#[test]
fn a_matrix_is_its_shape_and_its_elements() {
    #[traced]
    fn f(x: &[Var]) -> Var {
        let mut v = nalgebra::Vector2::new(x[0], x[1]);
        if x[0] > 0.0 {
            v[0] = x[1];
        }
        v[0] * v[1]
    }
    assert_eq!(marks(f, &[1.0, 2.0]), "enter1 enter2 guard join2 state=# phi phi join1 phi");
}

#[cfg(feature = "ndarray")]
#[test]
fn an_array_is_its_shape_and_its_elements() {
    #[traced]
    fn f(x: &[Var]) -> Var {
        let mut v = ndarray::Array1::from(x.to_vec());
        if x[0] > 0.0 {
            v[0] = x[1];
        }
        v[0] * v[1]
    }
    assert_eq!(marks(f, &[1.0, 2.0]), "enter1 enter2 guard join2 state=2 phi phi join1 phi");
}
