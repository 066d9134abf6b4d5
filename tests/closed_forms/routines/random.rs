//! Random routines: programs with shared inputs and inner loops.

use super::{Random, power_of_ten, sign};
use phigrad::internals::entity::Entity;
use phigrad::internals::numeric::{
    AffineMap, AffinePower, Instruction, OPERATIONS, Power, Program, Slot, Trips,
};

/// A slot that is defined.
fn any(random: &mut Random, program: &Program) -> Slot {
    Slot::from_index(random.below(program.slots()))
}

/// A random map; some entries are zero, and many occur twice.
fn map(random: &mut Random, program: &Program, states: usize) -> AffineMap {
    let mut entries = |count: usize| -> Vec<Option<Slot>> {
        let entry = |_| (random.below(4) > 0).then(|| any(random, program));
        (0..count).map(entry).collect()
    };
    AffineMap::new(entries(states * states), entries(states)).unwrap()
}

/// A routine of `states` states.
pub fn routine(random: &mut Random, states: usize) -> AffinePower {
    let inputs = 2 + random.below(4) as u32;
    let mut program = Program::new(inputs);
    program.push(Instruction::Input(0)).unwrap();
    for _ in 0..random.below(10) + 3 {
        let (a, b) = (any(random, &program), any(random, &program));
        let instruction = match random.below(14) {
            0..=3 => Instruction::Input(random.below(inputs as usize) as u32),
            4 => Instruction::Rounded(random.below(inputs as usize) as u32),
            5 => Instruction::Constant(random.pick(&[1.0, 0.5, -0.25, 1e-3])),
            6..=12 => Instruction::Apply(random.pick(&OPERATIONS), [a, b]),
            _ => {
                let states = random.pick(&[1, 1, 2, 3]);
                let trips = random.pick(&[0, 1, 2, 3, 17, 20]);
                Instruction::Power(Box::new(Power { map: map(random, &program, states), trips }))
            }
        };
        program.push(instruction).unwrap();
    }
    let map = map(random, &program, states);
    let start = (0..states).map(|_| any(random, &program)).collect();
    let trips = random.pick(&[0, 1, 2, 3, 7, 33, 64, 100, 1000, 5000, 1_000_000]);
    let outputs = (0..states as u32).filter(|_| random.below(2) == 0).collect::<Vec<_>>();
    let outputs = if outputs.is_empty() { vec![0] } else { outputs };
    let differentiated = (0..inputs).filter(|_| random.below(4) > 0).collect();
    let trips = Trips::Constant(trips);
    AffinePower::new(program, map, start, trips, outputs, differentiated).unwrap()
}

/// Numbers like rates, shares and states.
pub fn inputs(random: &mut Random, count: usize) -> Vec<f64> {
    let number = |_| match random.below(8) {
        0 => random.pick(&[0.0, 1.0, -1.0]),
        1 => 1.0 - power_of_ten(random, -9.0, 0.0),
        2 => sign(random) * power_of_ten(random, -6.0, 2.0),
        _ => random.uniform(-1.0, 1.0),
    };
    (0..count).map(number).collect()
}
