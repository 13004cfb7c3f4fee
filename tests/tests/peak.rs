//! Tests that the peak of a program is exact, in bytes and in blocks.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use memreport_analysis::recording;
use memreport_analysis::recording::{Recording, Which};

const PEAKING: &str = env!("CARGO_BIN_EXE_peaking");

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("memreport-peak-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A recording, and the high-water mark that the program itself has counted.
struct Recorded {
    recording: Recording,
    highest: u64,
}

fn recorded(mode: &str, options: &str) -> Recorded {
    let folder = Folder::new(&format!("peak-{mode}-{}", options.len()));
    let count = folder.0.join("highest");
    let mut command = Command::new(PEAKING);
    command.arg(&count).arg(mode).env("DMD", options);
    command.env(dmd::record::VARIABLE, folder.0.join("%p"));
    let mut child = command.spawn().expect("it starts");
    let status = child.wait().expect("it ends");
    assert!(status.success(), "{status}");
    let file = fs::File::open(folder.0.join(child.id().to_string())).expect("it recorded");
    let recording = recording::read(file).expect("a recording");
    assert!(recording.is_whole);
    let highest = fs::read_to_string(count).expect("it counted").parse().expect("a number");
    Recorded { recording, highest }
}

#[track_caller]
fn assert_exact(Recorded { recording, highest }: &Recorded) {
    let place = recording.scopes.iter().position(|scope| scope.name == "counted");
    let scope = u16::try_from(place.expect("a scope") + 1).expect("few scopes");
    let is_counted = |site: u32| recording.sites[&site].scope == scope;
    let at_peak = recording.blocks(Which::AtPeak).expect("our own");
    let counted = at_peak.iter().filter(|block| is_counted(block.site));
    let bytes: u64 = counted.map(|block| block.usable).sum();
    assert!(bytes > 1_000_000, "{bytes}");
    assert_eq!(bytes, *highest, "the blocks of the peak are those of another moment");
    let peak = recording.peak().expect("there is one");
    assert!(peak.is_exact);
    // The others belong to the threads and to the program's start.
    let others = peak.bytes - bytes;
    assert!(others < 100_000, "{others} bytes are not the program's");
}

#[test]
fn the_peak_of_a_thread_is_exact_with_its_blocks() {
    assert_exact(&recorded("one", "--mode=live --stacks=none"));
}

#[test]
fn the_peak_of_several_threads_is_exact_with_their_blocks() {
    assert_exact(&recorded("many", "--mode=live --stacks=none"));
}

#[test]
fn the_peak_of_a_sample_is_not_called_exact() {
    let Recorded { recording, .. } = recorded("one", "--mode=profile");
    assert!(recording.peak().is_some_and(|peak| !peak.is_exact));
}
