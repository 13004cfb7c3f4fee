//! Pairs of dumps and command lines to compare with dmd.py.

use crate::generate::dumps::{Shape, dump};
use crate::generate::random::Random;

/// One comparison.
pub(crate) struct Case {
    /// The options, equal for both programs.
    pub(crate) options: Vec<String>,
    /// One dump, or two to compare.
    pub(crate) dumps: Vec<String>,
    pub(crate) zipped: bool,
}

const MODES: [&str; 4] = ["live", "dark-matter", "cumulative", "scan"];

impl Case {
    pub(crate) fn generate(random: &mut Random) -> Self {
        let mode = random.pick(&MODES);
        let shape = Shape::any(random);
        let mut dumps = vec![dump(mode, &shape, random)];
        if random.percent(40) {
            // A few pairs mix two modes: both programs must refuse them.
            let mode = if random.percent(95) { mode } else { random.pick(&MODES) };
            dumps.push(dump(mode, &shape, random));
        }
        let mut options = options(random);
        if *mode == "scan" && random.percent(50) || random.percent(2) {
            options.push("--clamp-contents".to_owned());
            options.extend(random.percent(70).then(|| "--print-clamp-stats".to_owned()));
        }
        Self { options, dumps, zipped: random.percent(20) }
    }
}

fn options(random: &mut Random) -> Vec<String> {
    let mut options = vec!["--no-fix-stacks".to_owned()];
    if random.percent(60) {
        let frames = 1 + random.below(24);
        options
            .push(random.pick(&[format!("--max-frames={frames}"), format!("-f{frames}")]).clone());
    }
    if random.percent(60) {
        options
            .push(format!("--sort-by={}", random.pick(&["usable", "req", "slop", "num-blocks"])));
    }
    options.extend(random.percent(40).then(|| "-a".to_owned()));
    options.extend(random.percent(15).then(|| "--filter-stacks-for-testing".to_owned()));
    while random.percent(30) {
        let text = random.pick(&["f1", "!f2", "\\!x", "malloc", "!???", "é", "#01", "", "!"]);
        options.push(format!("--filter={text}"));
    }
    options
}
