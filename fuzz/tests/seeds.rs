//! Tests that every target accepts its seeds, and survives damaged ones.

use memreport_fuzz::mutate::mutated;
use memreport_fuzz::seeds;
use memreport_fuzz::targets::ALL;

/// The damaged inputs of each target. `cargo xtask fuzz` runs more.
const INPUTS: usize = 300;

#[test]
fn damaged_inputs_are_refused_without_a_panic() {
    for target in ALL {
        let inputs = seeds::read(&seeds::folder(target.name)).expect("each target has seeds");
        assert!(!inputs.is_empty(), "{}", target.name);
        inputs.iter().for_each(|bytes| (target.run)(bytes));
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..INPUTS {
            (target.run)(&mutated(&inputs, &mut random));
        }
    }
}
