//! Reverse sweep of calls of custom operations: a call of the vector-Jacobian product, with the
//! adjoints of all outputs as weights.

use std::sync::Arc;

use super::reverse::Reverse;
use crate::custom::{Custom, CustomFunction, CustomRoutine};
use crate::numeric::Routine;
use crate::op::Op;
use crate::ssa::{Activity, CallData, Flow, Graph, Node};

/// The first call in `graph` of a custom operation whose outputs depend on active inputs and that
/// the reverse pass does not differentiate.
pub fn custom_without_derivative(graph: &Graph) -> Option<&Custom> {
    let is_lacking = |routine: &CustomRoutine| match routine.function {
        CustomFunction::Eval => false,
        CustomFunction::Jvp => !routine.custom.is_twice_differentiable(),
        CustomFunction::Vjp | CustomFunction::VjpTangent => true,
    };
    let calls = graph.calls.values();
    let mut lacking = calls.filter(|call| call.routine.custom().is_some_and(is_lacking)).peekable();
    lacking.peek()?;
    let varied = Activity::of(&Flow::of(graph)).varied;
    let varies = |call: &&CallData| {
        let inputs = call.routine.custom().map_or(0, |routine| routine.custom.inputs());
        call.args[..inputs].iter().any(|&arg| varied[arg])
    };
    lacking.find(varies)?.routine.custom().map(|routine| &routine.custom)
}

impl Reverse<'_> {
    /// Notes the results of `copy`, the copy of `call`, for derivatives. They are in the block of
    /// the call.
    pub(super) fn note_custom_results(&mut self, call: Node, copy: Node) {
        if let Some(routine) = self.graph.custom_routine(call) {
            let numbers = 1..=routine.outputs() as u32;
            let results = numbers.map(|number| self.builder.result(copy, number)).collect();
            self.custom_results.insert(call, results);
        }
    }

    /// Adds `increment` to the adjoint of result `number` of `call`.
    pub(super) fn add_to_output(&mut self, call: Node, number: u32, increment: Node) {
        let sum = match self.output_adjoints.get(&(call, number)) {
            Some(&before) => self.builder.apply(Op::Add, &[before, increment]),
            None => increment,
        };
        self.output_adjoints.insert((call, number), sum);
    }

    /// Propagates the adjoints of the outputs of `call`, a call of a custom operation, to its
    /// operands.
    pub(super) fn propagate_call(&mut self, call: Node) {
        let Some(CustomRoutine { custom, function }) = self.graph.custom_routine(call).cloned()
        else {
            return;
        };
        let outputs = custom.outputs();
        let adjoints: Vec<Option<Node>> = (1..=outputs as u32)
            .map(|number| self.output_adjoints.remove(&(call, number)))
            .collect();
        if adjoints.iter().all(Option::is_none) {
            return;
        }
        self.builder.set_place(self.graph.nodes[call].place);
        let zero = self.builder.constant(0.0);
        let weights = adjoints.into_iter().map(|adjoint| adjoint.unwrap_or(zero));
        let weights: Vec<Node> = weights.collect();
        let operands = self.graph.operands(call).to_vec();
        let values: Vec<Node> = operands.iter().map(|&arg| self.primal_value(arg, call)).collect();
        let inputs = custom.inputs();
        match function {
            CustomFunction::Eval => {
                let results = self.custom_results.get(&call).cloned().unwrap_or_default();
                let args = [values, results, weights].concat();
                self.add_product(&custom, CustomFunction::Vjp, args, &operands);
            }
            // Outputs and saved values are functions of the inputs, and count as such in the
            // derivative by these.
            CustomFunction::Jvp => {
                let (point, direction) = values.split_at(values.len() - inputs);
                let by_direction = [point, &weights].concat();
                let by_inputs = [point, &weights, direction].concat();
                let directions = operands.len() - inputs;
                self.add_product(
                    &custom,
                    CustomFunction::Vjp,
                    by_direction,
                    &operands[directions..],
                );
                self.add_product(
                    &custom,
                    CustomFunction::VjpTangent,
                    by_inputs,
                    &operands[..inputs],
                );
            }
            CustomFunction::Vjp | CustomFunction::VjpTangent => {}
        }
    }

    /// Calls a function of `custom`, and adds the results to the adjoints of `operands`, the last
    /// one first, as the tape does.
    fn add_product(
        &mut self,
        custom: &Custom,
        function: CustomFunction,
        args: Vec<Node>,
        operands: &[Node],
    ) {
        let routine = CustomRoutine { custom: custom.clone(), function };
        let product = self.builder.call(&Arc::new(Routine::Custom(routine)), args);
        self.builder.guard(product, true);
        for (number, &operand) in operands.iter().enumerate().rev() {
            if self.primal.varied[operand] {
                let increment = self.builder.result(product, number as u32 + 1);
                self.add(operand, increment);
            }
        }
    }
}
