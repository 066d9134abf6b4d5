//! Batches: the results of single calls, whoever serves the elements, and errors by element.

use std::cell::Cell;
use std::convert::Infallible;

use crate::common::served::{NUMERICS, limits, manual};
use phigrad::internals::Random;
use phigrad::{BatchError, ElementCause, Error, Numerics, Rows, Tape, Var};

/// Branches, calls of library functions, and selections.
fn branches(x: &[Var]) -> Var {
    let y = if x[0] > 0.5 { x[0].sin() * x[1] } else { x[0] / (1.0 + x[1] * x[1]) };
    let z = y.max(x[2]).min(x[1]) + x[2].abs().sqrt() + y.powi(3) * x[1].signum();
    z * x[2].exp() - y.copysign(x[2]) + x[0].floor()
}

/// A loop with a trip count that depends on the input.
fn halving(x: &[Var]) -> Var {
    let (mut y, mut sum) = (x[0] * x[0] + x[1] * x[1] + x[2], Var::from(0.0));
    while y > 0.1 {
        y = y * 0.5 - 0.01 * y.sqrt();
        sum += y * x[1];
    }
    sum + x[2]
}

/// A loop over data.
fn residuals(x: &[Var]) -> Var {
    let data: Vec<f64> = (0..60).map(|i| f64::from(i * 37 % 101) * 0.02).collect();
    data.iter().map(|&d| (x[0] * d.sin() + x[1] * d - x[2]).tanh().powi(2)).sum()
}

const FUNCTIONS: [fn(&[Var]) -> Var; 3] = [branches, halving, residuals];

fn numbers(random: &mut Random, count: usize) -> Vec<f64> {
    (0..count).map(|_| random.uniform(-1.0, 2.0)).collect()
}

fn bits(numbers: &[f64]) -> Vec<u64> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

/// So many that the kernel gets code for two elements at once, which serves the last ones.
const MANY: usize = 6001;

#[test]
fn batches_have_the_results_of_single_calls() {
    let mut random = Random::new(1);
    for numerics in NUMERICS {
        for f in FUNCTIONS {
            let [one, all] = [(); 2].map(|()| manual(numerics).audit(0).record(f));
            for x in numbers(&mut random, 90).chunks(3) {
                one.grad(x).unwrap();
                all.grad(x).unwrap();
            }
            for count in [0, 1, 7, MANY, MANY] {
                if count == MANY {
                    one.compile().unwrap();
                    all.compile().unwrap();
                }
                let xs = numbers(&mut random, 3 * count);
                let (mut values, mut gradients) = (vec![0.0; count], vec![0.0; 3 * count]);
                let mut both = (values.clone(), gradients.clone());
                all.eval_batch_into(&xs, count, &mut values).unwrap();
                all.grad_batch_into(&xs, count, &mut gradients).unwrap();
                let to = (&mut both.0, &mut both.1);
                all.value_and_grad_batch_into(&xs, count, to.0, to.1).unwrap();
                for (number, x) in xs.chunks(3).enumerate() {
                    let gradient = &gradients[3 * number..][..3];
                    assert_eq!(one.eval(x).unwrap().to_bits(), values[number].to_bits(), "{x:?}");
                    assert_eq!(bits(&one.grad(x).unwrap()), bits(gradient), "{x:?}");
                    let (value, gradient) = one.value_and_grad(x).unwrap();
                    assert_eq!(value.to_bits(), both.0[number].to_bits(), "{x:?}");
                    assert_eq!(bits(&gradient), bits(&both.1[3 * number..][..3]), "{x:?}");
                }
            }
            let (one, all) = (one.report(), all.report());
            assert_eq!(one.kernel_calls, all.kernel_calls);
            assert_eq!((one.tape_calls, one.fallbacks), (all.tape_calls, all.fallbacks));
            assert!(all.kernel_calls > 6 * MANY as u64 / 2);
        }
    }
}

#[test]
fn inputs_and_data_are_rows_or_shared() {
    let f = |x: &[Var], data: &[Var]| -> Var {
        let mean = data.iter().sum::<Var>() / data.len() as f64;
        data.iter().map(|&d| (d - x[0] * mean).powi(2) * x[1]).sum()
    };
    let mut random = Random::new(2);
    for numerics in NUMERICS {
        let f = manual(numerics).audit(0).record_with(f);
        f.grad(&[1.0, 2.0], &[0.5; 8]).unwrap();
        f.compile().unwrap();
        for count in [3, MANY, MANY] {
            let (xs, data) = (numbers(&mut random, 2 * count), numbers(&mut random, 8 * count));
            let (x, row) = (Rows::Shared(&xs[..2]), Rows::Shared(&data[..8]));
            for (active, inactive) in [
                (Rows::Each(&xs), Rows::Each(&data)),
                (Rows::Each(&xs), row),
                (x, Rows::Each(&data)),
                (x, row),
            ] {
                let of = |rows: Rows<'_>, length: usize, element: usize| match rows {
                    Rows::Shared(row) => row.to_vec(),
                    Rows::Each(rows) => rows[element * length..][..length].to_vec(),
                };
                let (mut values, mut gradients) = (vec![0.0; count], vec![0.0; 2 * count]);
                f.value_and_grad_batch_into(active, inactive, count, &mut values, &mut gradients)
                    .unwrap();
                for element in 0..count {
                    let (x, data) = (of(active, 2, element), of(inactive, 8, element));
                    let (value, gradient) = f.value_and_grad(&x, &data).unwrap();
                    assert_eq!(value.to_bits(), values[element].to_bits());
                    assert_eq!(bits(&gradient), bits(&gradients[2 * element..][..2]));
                }
            }
        }
        assert_eq!(f.report().tape_calls, 1);
    }
}

#[test]
fn elements_on_unknown_paths_are_served_by_the_tape_and_merged() {
    let f = manual(Numerics::Exact).record(|x: &[Var]| if x[0] > 0.0 { x[0] } else { x[0].exp() });
    f.grad(&[1.0]).unwrap();
    f.compile().unwrap();
    let xs = [1.0, 2.0, -1.0, 3.0, -2.0, 4.0, f64::NAN];
    let mut gradients = [0.0; 7];
    f.grad_batch_into(&xs, 7, &mut gradients).unwrap();
    assert_eq!(gradients[..6], [1.0, 1.0, (-1.0f64).exp(), 1.0, (-2.0f64).exp(), 1.0]);
    let report = f.report();
    assert_eq!((report.kernel_calls, report.fallbacks, report.paths), (4, 3, 2));
    f.compile().unwrap();
    f.grad_batch_into(&xs[..6], 6, &mut gradients[..6]).unwrap();
    assert_eq!(f.report().kernel_calls, 10);
}

#[test]
fn shape_errors_come_before_any_call() {
    let calls = Cell::new(0);
    let f = Tape::record_with(|x: &[Var], _: &[Var]| {
        calls.set(calls.get() + 1);
        x[0]
    });
    let mut gradients = [7.0; 4];
    let mut error = |xs: Rows<'_>, data: Rows<'_>, count: usize, length: usize| -> String {
        match f.grad_batch_into(xs, data, count, &mut gradients[..length]).unwrap_err() {
            BatchError::Shape(error) => {
                assert!(error.is_shape() && error.element().is_none());
                error.to_string()
            }
            error => panic!("{error}"),
        }
    };
    let none = Rows::Shared(&[]);
    assert_eq!(
        error(Rows::Each(&[1.0; 4]), none, 3, 4),
        "the slice of inputs has length 4, which is no multiple of 3, the number of elements"
    );
    assert!(error(Rows::Each(&[1.0; 4]), Rows::Each(&[1.0; 3]), 2, 4).contains("slice of data"));
    assert_eq!(
        error(Rows::Each(&[1.0; 4]), none, 2, 3),
        "the slice of gradients has length 3, and 4 is expected"
    );
    assert!(error(Rows::Each(&[1.0; 4]), none, 0, 4).contains("no multiple of 0"));
    assert!(error(Rows::Shared(&[1.0; 2]), none, 1, 4).contains("slice of gradients"));
    assert_eq!((calls.get(), gradients), (0, [7.0; 4]));
}

#[test]
fn an_error_of_one_element_leaves_the_others_their_results() {
    let root = |x: &[Var]| if x[0] < 0.0 { Err("negative") } else { Ok(x[0].sqrt()) };
    let f = manual(Numerics::Exact).record(root);
    for is_compiled in [false, true] {
        if is_compiled {
            f.compile().unwrap();
        }
        let (mut values, mut gradients) = ([7.0; 5], [7.0; 5]);
        let xs = [1.0, -1.0, 4.0, -2.0, 16.0];
        let errors = f.value_and_grad_batch_into(&xs, 5, &mut values, &mut gradients).unwrap_err();
        assert_eq!((values, gradients), ([1.0, 7.0, 2.0, 7.0, 4.0], [0.5, 7.0, 0.25, 7.0, 0.125]));
        let text = "element 1 of the batch: the function returned an error: negative (and another \
                    element)";
        assert_eq!(errors.to_string(), text);
        let BatchError::Elements(errors) = errors else { panic!("no shape error") };
        let elements: Vec<usize> = errors.iter().map(|error| error.element).collect();
        assert_eq!(elements, [1, 3]);
        assert!(matches!(errors[0].cause, ElementCause::Function("negative")));
    }
}

#[test]
fn errors_of_calls_name_the_element_and_the_place() {
    let limits = limits(|limits| limits.call_events = 20);
    let f = manual(Numerics::Exact).limits(limits).record(|x: &[Var]| {
        let mut product = x[0];
        while product < 100.0 {
            product *= x[0];
        }
        product
    });
    let mut values = [0.0; 4];
    let error = f.eval_batch_into(&[10.0, 1.001, 1.01, 5.0], 4, &mut values).unwrap_err();
    assert_eq!(values, [100.0, 0.0, 0.0, 125.0]);
    let error: Error = error.into();
    assert!(error.is_too_long() && error.place().is_some());
    assert_eq!(error.element(), Some(1));
    assert!(error.to_string().starts_with("element 1 of the batch: the run recorded more than 20"));
    let none: Result<(), BatchError<Infallible>> = f.eval_batch_into(&[10.0], 1, &mut values[..1]);
    none.unwrap();
    let empty = Error::from(BatchError::Elements(vec![]));
    assert_eq!(empty.to_string(), "no element of the batch has an error");
}

#[test]
fn hidden_state_is_noticed_in_batches_as_in_single_calls() {
    let scale = Cell::new(1.0);
    let f = manual(Numerics::Real).audit(50).record(|x: &[Var]| x[0] * scale.get() + x[0].sin());
    f.grad(&[1.0]).unwrap();
    f.compile().unwrap();
    scale.set(-1.0);
    let (xs, mut gradients) = (vec![0.0; 200], vec![0.0; 200]);
    f.grad_batch_into(&xs, 200, &mut gradients).unwrap();
    let wrong = gradients.iter().take_while(|&&gradient| gradient == 2.0).count();
    // The first audited call among the first hundred withdraws the kernel.
    assert!(wrong < 100 && gradients[wrong..].iter().all(|&gradient| gradient == 0.0), "{wrong}");
    assert!(f.report().refusals[0].to_string().contains("depends on state"));
}

#[test]
fn audits_take_place_at_the_same_calls_as_single_ones() {
    let runs = Cell::new(0);
    let function = |x: &[Var]| {
        runs.set(runs.get() + 1);
        x[0].sin()
    };
    let count = |batch: usize| {
        let f = manual(Numerics::Exact).record(function);
        f.grad(&[1.0]).unwrap();
        f.compile().unwrap();
        runs.set(0);
        let xs = vec![0.5; batch];
        for _ in 0..5000 / batch {
            f.grad_batch_into(&xs, batch, &mut vec![0.0; batch]).unwrap();
        }
        runs.get()
    };
    let single = count(1);
    assert!(single > 3);
    assert_eq!([count(10), count(1000), count(5000)], [single; 3]);
}

#[cfg(feature = "rayon")]
#[test]
fn batches_on_several_threads_have_the_same_results() {
    let f = manual(Numerics::Real).audit(0).record(|x: &[Var]| match x[0] > 1.5 {
        true => Err("large"),
        false => Ok(x[0].sin() * x[1]),
    });
    f.grad(&[1.0, 2.0]).unwrap().unwrap();
    f.compile().unwrap();
    let xs = numbers(&mut Random::new(3), 2 * MANY);
    let (mut one, mut all) = (vec![0.0; 2 * MANY], vec![0.0; 2 * MANY]);
    let elements = |result: Result<(), BatchError<&str>>| match result.unwrap_err() {
        BatchError::Elements(errors) => {
            errors.iter().map(|error| error.element).collect::<Vec<_>>()
        }
        error => panic!("{error}"),
    };
    let expected = elements(f.grad_batch_into(&xs, MANY, &mut one));
    assert_eq!(elements(f.par_grad_batch_into(&xs, MANY, &mut all)), expected);
    assert_eq!(bits(&one), bits(&all));
}
