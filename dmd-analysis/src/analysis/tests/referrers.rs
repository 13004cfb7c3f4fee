//! Referrers of blocks in small scan dumps.

use super::dump;
use crate::analysis::{
    Chain, ExplainOptions, Referrer, ReferrersError, clamp, referrers, write_referrers,
};
use crate::read::Dump;

/// 0x100 is pointed at by 0x200 (its start) and 0x300 (into it); 0x200 by 0x400; 0x500 and 0x600
/// point at each other, and 0x500 at 0x400; 0x700 points at itself.
const BLOCKS: &str = r#"{"req":32,"addr":"100","alloc":"A","contents":["0","1","2","3"]},
    {"req":16,"addr":"200","alloc":"B","contents":["0","100"]},
    {"req":24,"slop":8,"addr":"300","contents":["7","8","118"]},
    {"req":8,"addr":"400","contents":["208"]},
    {"req":16,"addr":"500","contents":["600","400"]},
    {"req":16,"addr":"600","contents":["500"]},
    {"req":8,"addr":"700","contents":["700"]},
    {"req":4,"addr":"800"}"#;

fn scan() -> Dump {
    dump("scan", BLOCKS)
}

fn text(dump: &Dump, address: u64) -> String {
    let mut out = Vec::new();
    let referred = referrers(dump, address).unwrap();
    write_referrers(dump, &referred, &ExplainOptions::default(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn links(chain: &Chain) -> Vec<(usize, u64, u64)> {
    chain.links.iter().map(|Referrer { block, at, into }| (*block, *at, *into)).collect()
}

#[test]
fn referrers_are_found_by_any_address_of_the_block() {
    let dump = scan();
    for address in [0x100, 0x11f] {
        let referred = referrers(&dump, address).unwrap();
        assert_eq!((referred.block, referred.offset), (0, address - 0x100));
        let found: Vec<_> =
            referred.referrers.iter().map(|link| (link.block, link.at, link.into)).collect();
        assert_eq!(found, [(1, 8, 0), (2, 16, 24)]);
    }
    // Slop is a part of the block.
    assert_eq!(referrers(&dump, 0x31f).unwrap().block, 2);
}

#[test]
fn chains_lead_to_what_nothing_points_at_or_go_round_in_circles() {
    let referred = referrers(&scan(), 0x100).unwrap();
    let chains: Vec<_> =
        referred.chains.iter().map(|chain| (chain.is_cycle, links(chain))).collect();
    assert_eq!(
        chains,
        [
            (false, vec![(2, 16, 24)]),
            (true, vec![(1, 8, 0), (3, 0, 8), (4, 8, 0), (5, 0, 0), (4, 0, 0)]),
        ]
    );
    let alone = referrers(&scan(), 0x700).unwrap();
    assert_eq!((alone.referrers.len(), alone.chains.len()), (1, 0), "it points at itself");
}

#[test]
fn a_clamped_dump_says_the_same_but_for_where_in_the_block() {
    let mut clamped = scan();
    clamp(&mut clamped).unwrap();
    let referred = referrers(&clamped, 0x100).unwrap();
    let found: Vec<_> =
        referred.referrers.iter().map(|link| (link.block, link.at, link.into)).collect();
    assert_eq!(found, [(1, 8, 0), (2, 16, 0)]);
}

#[test]
fn words_of_32_bits_are_counted_as_such() {
    let dump = dump(
        "scan",
        r#"{"req":8,"addr":"100","contents":["0","200"]},{"req":4,"addr":"200","contents":["0"]}"#,
    );
    assert_eq!(referrers(&dump, 0x200).unwrap().referrers[0].at, 4);
}

#[test]
fn it_is_told_in_lines() {
    let expected = "\
0x100: 32 bytes, type unknown, allocated in a
  32 bytes requested, 0 slop
  the address is at byte 4 of it
  allocated at a (a.rs:1)

2 words in the heap point at it:
  1. byte 8 of 0x200: 16 bytes, type unknown, allocated in b → its start
  2. byte 16 of 0x300: 32 bytes, type unknown → byte 24 of it

A chain:
  0x100
  ← byte 16 of 0x300: 32 bytes, type unknown (into byte 24)
  nothing in the heap points there: a static, a thread's stack or nothing at all holds it

A cycle:
  0x100
  ← byte 8 of 0x200: 16 bytes, type unknown, allocated in b
  ← byte 0 of 0x400: 8 bytes, type unknown (into byte 8)
  ← byte 8 of 0x500: 16 bytes, type unknown
  ← byte 0 of 0x600: 16 bytes, type unknown
  ← byte 0 of 0x500: 16 bytes, type unknown
  0x500 came before: they point at each other
";
    assert_eq!(text(&scan(), 0x104), expected);
    let at_the_start = expected.replace("  the address is at byte 4 of it\n", "");
    assert_eq!(text(&scan(), 0x100), at_the_start);
    assert!(text(&scan(), 0x800).contains("\nNothing in the heap points at it: "));
}

#[test]
fn what_cannot_be_answered_says_why() {
    let error = |mode, address| referrers(&dump(mode, BLOCKS), address).unwrap_err();
    assert_eq!(error("scan", 0x120), ReferrersError::NoBlock(0x120));
    assert_eq!(
        error("live", 0x100).to_string(),
        "contents are only in scan dumps: take one with DMD=--mode=scan"
    );
    assert!(referrers(&dump("scan", ""), 1).is_err());
}
