//! Questions of the plan, for each combination of its bits.

use super::*;

#[test]
fn each_mode_is_a_row() {
    let row = |options| {
        let plan = Plan::of(options);
        [
            plan.is_awake() && plan.inserts(),
            plan.samples(),
            plan.has_stacks(),
            plan.has_partial_stacks(),
            plan.counts_freed(),
            plan.keeps_times(),
        ]
    };
    let of = |mode, stacks| Options::default().mode(mode).stacks(stacks);
    let timed = |options: Options| options.times(true);
    let table = [
        (of(Mode::Live, Stacks::Full), [true, false, true, false, false, false]),
        (of(Mode::DarkMatter, Stacks::Partial), [true, false, true, true, false, false]),
        (of(Mode::DarkMatter, Stacks::None), [true, false, false, false, false, false]),
        (of(Mode::Cumulative, Stacks::None), [true, false, false, false, true, false]),
        (of(Mode::Scan, Stacks::None), [true, false, true, false, false, false]),
        (of(Mode::Profile, Stacks::Partial), [true, true, true, false, false, false]),
        (of(Mode::Profile, Stacks::None), [true, true, false, false, false, false]),
        (timed(of(Mode::Live, Stacks::Full)), [true, false, true, false, false, true]),
        (timed(of(Mode::Profile, Stacks::None)), [true, true, false, false, false, true]),
    ];
    for (options, expected) in table {
        assert_eq!(row(options), expected, "{options:?}");
    }
    // Words are prepared in no other modes.
    for (mode, stacks, is_prepared) in [
        (Mode::DarkMatter, Stacks::None, true),
        (Mode::Cumulative, Stacks::None, true),
        (Mode::DarkMatter, Stacks::Partial, false),
        (Mode::Live, Stacks::Full, false),
        (Mode::Profile, Stacks::None, false),
    ] {
        assert_eq!(Plan::of(of(mode, stacks)).inserts_prepared(), is_prepared, "{mode:?}");
    }
}

#[test]
fn a_question_of_several_bits_is_several_questions() {
    for bits in 0..COMPLETE {
        let plan = Plan(bits);
        let is_prepared = plan.is_prepared();
        assert_eq!(is_prepared, bits & UNPREPARED == 0);
        assert_eq!(plan.is_asleep_and_prepared(), !plan.is_awake() && is_prepared);
        assert_eq!(plan.has_stops(), !plan.inserts_all() && !plan.is_observed());
        assert_eq!(plan.is_filtered_and_prepared(), plan.is_filtered() && is_prepared);
        assert_eq!(plan.samples_prepared(), plan.samples() && is_prepared);
        let is_of_profile = plan.samples() && !plan.is_observed();
        assert_eq!(plan.inserts_sampled(), is_of_profile || plan.is_filtered());
        assert_eq!(plan.keeps_times(), bits & TIMES != 0 || plan.is_observed());
        let watches_events = plan.counts_freed() || plan.writes_events() || plan.is_observed();
        let watches = watches_events || plan.is_filtered() || plan.has_c_heap();
        assert_eq!(plan.removes_simply(), plan.is_awake() && !watches);
        let is_more = plan.samples() || plan.writes_events() || plan.is_filtered();
        assert_eq!(plan.inserts_simply(), plan.inserts_all() && !is_more);
        assert!(!plan.inserts_prepared() || !plan.has_stops() && !plan.has_stacks());
        assert!(!plan.inserts_prepared() || !is_more && !plan.keeps_times());
        assert_eq!(plan.removes_simply_unsampled(), plan.removes_simply() && !plan.samples());
        let is_simple = plan.removes_simply_unsampled() && is_prepared;
        assert_eq!(Plan(bits | COMPLETE).derived().removes_unseen(), is_simple);
        assert!(!Plan(bits | REMOVES_UNSEEN).derived().removes_unseen());
        let insertion = match () {
            () if plan.is_observed() => Insertion::Observed,
            () if !plan.inserts() => Insertion::Nothing,
            () if !plan.is_decided() || bits & TIMES != 0 => Insertion::Timed,
            () if plan.has_stacks() || plan.writes_events() => Insertion::WithSite,
            () => Insertion::WithoutStack,
        };
        assert_eq!(plan.insertion(), insertion, "{bits:b}");
    }
    for (bit, has) in [
        (AWAKE, Plan::is_awake as fn(Plan) -> bool),
        (INSERTS, Plan::inserts),
        (SAMPLES, Plan::samples),
        (STACKS, Plan::has_stacks),
        (PARTIAL_STACKS, Plan::has_partial_stacks),
        (COUNTS_FREED, Plan::counts_freed),
        (EVENTS, Plan::writes_events),
        (OBSERVED, Plan::is_observed),
        (FREE_STACKS, Plan::has_free_stacks),
        (EACH, Plan::inserts_all),
        (FILTERED, Plan::is_filtered),
        (COMPLETE, Plan::is_complete),
        (DECIDED, Plan::is_decided),
    ] {
        assert!(has(Plan(bit)) && !has(Plan(!bit)), "{bit:b}");
    }
}

#[test]
fn the_table_is_complete_while_each_block_is_inserted_without_a_time() {
    let options = Options::default().mode(Mode::DarkMatter);
    let each = Plan::of(options);
    let complete = Plan(each.0 | COMPLETE);
    assert!(each.is_complete_after(Plan::UNDECIDED));
    assert!(Plan::of(options.mode(Mode::Cumulative)).is_complete_after(complete));
    for (plan, before) in [
        (Plan::of(options.mode(Mode::Profile)), Plan::UNDECIDED),
        (Plan::of(options.times(true)), Plan::UNDECIDED),
        (Plan::of(options.times(true)), complete),
        (each, Plan(DECIDED)),
        (each, Plan::of(options.times(true))),
        (each, complete.without_inserting()),
        (each, Plan(complete.0 | OBSERVED)),
    ] {
        assert!(!plan.is_complete_after(before), "{plan:?} {before:?}");
    }
}

#[test]
fn without_insertions_freed_blocks_are_still_counted() {
    let plan = Plan::of(Options::default().mode(Mode::Cumulative)).without_inserting();
    assert!(plan.is_awake() && plan.counts_freed() && !plan.inserts() && !plan.has_stacks());
    let complete = Plan(AWAKE | COMPLETE);
    assert!(complete.derived().removes_unseen());
    assert!(!complete.without_inserting().derived().removes_unseen());
}
