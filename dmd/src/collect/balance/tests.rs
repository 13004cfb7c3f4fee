//! Tests what a balance makes of claims.

use memreport::__private::{Block as FoundBlock, Claim, Found, Place, Recorder as _};

use super::super::claims::ClaimBuffer;
use super::super::claims::starts::Starts;
use super::super::holders::reached::Roots;
use super::*;
use crate::sample::plan::whole_plan;
use crate::stack::site::SiteId;
use crate::table::epoch::Epoch;
use crate::table::packed_block::PackedBlock;

#[test]
fn a_first_claim_may_leave_bytes_out_and_each_further_one_is_too_much() {
    for (claims, expected) in [
        (&[][..], (0, 0, 0)),
        (&[104], (1, 0, 0)),
        (&[100], (1, 4, 0)),
        (&[110], (1, 0, 6)),
        (&[100, 7, 104], (3, 4, 111)),
    ] {
        let mut totals = ClaimTotals::default();
        claims.iter().for_each(|claimed| totals.add(*claimed, 104));
        assert_eq!((totals.count, totals.under, totals.over), expected, "{claims:?}");
    }
}

/// Returns a block of 100 bytes, of which 104 are usable, from before the collection.
fn block_at(start: usize) -> LiveBlock {
    let (requested, usable) = (100, 104);
    let (site, epoch, rate) = (SiteId::from_number(1), Epoch::FIRST, SamplingRate::EVERY);
    let block = Block { requested, usable, site, epoch, rate, time: 0 };
    let packed = PackedBlock::from_word(u64::MAX).expect("it is live");
    LiveBlock { start, block, packed }
}

#[test]
fn a_claim_of_an_unknown_block_is_wrong_if_it_is_inside_a_known_one() {
    let (granule, epoch) = (Granule::OF_32, Epoch::FIRST.next());
    let buffer = ClaimBuffer::new(granule, epoch, 0, Starts::new(granule));
    // Before, at the last byte of, and after the block.
    for (address, bytes) in [(0x0ff0, 1), (0x1067, 10), (0x1068, 100)] {
        let claim = Claim { address, size: Some(bytes), place: Place::Start };
        let found = Found { bytes, block: None, wrong: Some(Wrong::Untracked) };
        buffer.claimed(claim, found, Claimant { reporter: 1, field: None });
    }
    let log = buffer.into_log();
    let (before, after) = log.sorted().split_at(1);
    let reached = Reached::find(&Roots::new(granule), epoch, log.sorted());
    let mut balance = Balance::new(granule, whole_plan(), &log, &reached);
    balance.add_unmatched_claims(before);
    balance.add(block_at(0x1000), None, &[]);
    balance.add_unmatched_claims(after);
    assert_eq!((balance.summary.reported_untracked, balance.summary.over_reported), (101, 10));
    let wrong: Vec<_> = balance.wrong.as_slice().iter().collect();
    let [WrongReport { kind: WrongKind::Interior, address: 0x1067, claimed: 10, .. }] = wrong[..]
    else {
        panic!("{wrong:?}");
    };
}

#[test]
fn a_claim_that_was_not_looked_up_is_compared_with_the_block_at_its_address() {
    let (granule, epoch) = (Granule::OF_32, Epoch::FIRST.next());
    let buffer = ClaimBuffer::new(granule, epoch, 0, Starts::new(granule));
    let claimed = [(0x1000, 100), (0x2000, 98), (0x3000, 100)];
    for (start, requested) in claimed {
        let block = FoundBlock { start, requested, usable: 104, identity: 1 };
        let claim = Claim { address: start, size: Some(requested), place: Place::Start };
        let found = Found { bytes: 104, block: Some(block), wrong: None };
        buffer.claimed(claim, found, Claimant { reporter: 1, field: None });
    }
    let log = buffer.into_log();
    let reached = Reached::find(&Roots::new(granule), epoch, log.sorted());
    let mut balance = Balance::new(granule, whole_plan(), &log, &reached);
    for claims in log.sorted()[..2].chunks(1) {
        let start = usize::try_from(claims[0][0]).expect("it is an address");
        balance.add(block_at(start), None, claims);
    }
    // A later block is at the third address.
    balance.add_claims_left_out(&log.sorted()[2..]);
    let summary = balance.summary;
    assert_eq!((summary.once.blocks, summary.under_reported, summary.over_reported), (2, 0, 0));
    assert_eq!((summary.reported_transient, summary.reported_untracked), (104, 0));
    let wrong: Vec<_> = balance.wrong.as_slice().iter().collect();
    let [WrongReport { kind: WrongKind::Partial, address: 0x2000, claimed: 104, .. }] = wrong[..]
    else {
        panic!("{wrong:?}");
    };
}
