//! DMD's added time relative to the added time of its peers, and of as many idle instructions, in
//! the same rounds.

use super::rounds::OfVariant;
use super::variants::{
    DHAT_ALL, FULL, HEAPSCOPE, HEAPTRACK, IDLE, JEMALLOC_FULL, JEMALLOC_PROFILES, SERVO, Work,
};
use crate::bench::figure::Figure;

/// The peers, and the largest fraction of their cost that DMD may have.
const PEERS: [(&str, &str, f64); 4] = [
    (HEAPSCOPE, "heapscope", 1.0 / 3.0),
    (HEAPTRACK, "heaptrack", 1.0 / 3.0),
    (DHAT_ALL, "dhat, all", 1.0 / 15.0),
    (SERVO, "servo-allocator", 1.0 / 15.0),
];

pub(crate) fn figures(work: &Work, times: &[OfVariant]) -> Vec<Figure> {
    let of = |name: &str| times.iter().find(|of_variant| of_variant.variant.name == name);
    let mut figures = Vec::new();
    for (build, own) in ["FP", "default"].iter().zip(FULL) {
        for (peer, short, target) in PEERS {
            let (Some(own), Some(peer_times)) = (of(own), of(peer)) else { continue };
            let by_wall = work.is_wall || peer == HEAPTRACK;
            let name = format!("{build}, added / {short}");
            figures.push(compared(name, (own, peer_times), by_wall, parts).at_most(target, "x"));
        }
    }
    for (own, idle) in FULL.into_iter().chain([JEMALLOC_FULL]).zip(IDLE) {
        let (Some(own), Some(idle_times)) = (of(own), of(idle)) else { continue };
        let name = format!("{}, added / idle", own.variant.name);
        figures.push(compared(name, (own, idle_times), work.is_wall, parts));
    }
    if let [Some(own), Some(peer)] = JEMALLOC_PROFILES.map(of) {
        let name = "jemalloc: profile / its profiler".to_owned();
        figures.push(compared(name, (own, peer), work.is_wall, ratios));
    }
    figures
}

fn compared(
    name: String,
    (own, other): (&OfVariant, &OfVariant),
    by_wall: bool,
    compare: impl Fn(&[f64], &[f64]) -> Vec<f64>,
) -> Figure {
    match (own.ratios(by_wall), other.ratios(by_wall)) {
        (Ok(own), Ok(other)) => Figure::new(name, compare(&own, &other)),
        (Err(why), _) | (_, Err(why)) => Figure::not_run(name, why),
    }
}

/// Returns the time that DMD adds, as a fraction of the time that the peer adds.
fn parts(own: &[f64], peer: &[f64]) -> Vec<f64> {
    own.iter().zip(peer).map(|(own, peer)| (own - 1.0) / (peer - 1.0)).collect()
}

/// Returns the time with DMD, as a fraction of the time with the peer, each relative to its base.
fn ratios(own: &[f64], peer: &[f64]) -> Vec<f64> {
    own.iter().zip(peer).map(|(own, peer)| own / peer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_compared_not_what_it_takes() {
        assert_eq!(parts(&[1.5, 2.0], &[11.0, 5.0]), [0.05, 0.25]);
    }
}
