//! Profiles of the running program: they have all live blocks, and none of their own.

use std::io::Read;

dmd::global_allocator!();

const COUNT: usize = 1000;

#[inline(never)]
fn kept() -> Vec<Box<[u8]>> {
    (0..COUNT).map(|_| vec![1; 4000].into()).collect()
}

/// The only test of this binary, because the process is counted to the byte.
#[test]
fn a_program_serves_its_own_heap() {
    wait_for_harness();
    dmd::start("--mode=live".parse().unwrap()).unwrap();
    let blocks = kept();
    let text = || {
        let answer = dmd::pprof::heap("debug=1");
        assert_eq!((answer.status, answer.content_type), (200, "text/plain; charset=utf-8"));
        String::from_utf8(answer.body).unwrap()
    };
    let first = text();
    // glibc gives 4,008 bytes for 4,000.
    let line = first.lines().find(|line| line.ends_with("Ⓣ [u8]")).unwrap_or_default();
    assert!(line.contains("4,008,000") && line.contains(" 1,000 "), "{first}");
    assert!(first.contains("ƒ pprof::kept"), "{first}");
    // Profiles and their symbols take megabytes, which are in no profile.
    for _ in 0..2 {
        let answer = dmd::pprof::allocs("gc=1");
        assert_eq!((answer.status, answer.content_type), (200, "application/octet-stream"));
        let profile = unpacked(&answer.body);
        let has = |text: &str| profile.windows(text.len()).any(|part| part == text.as_bytes());
        assert!(has("pprof::kept") && has("inuse_space") && !has("alloc_space"));
        drop((answer, profile));
        let again = text();
        // Only the tracker's tables grow.
        let is_of_program = |line: &&str| !line.contains("in the tracker's own tables");
        let is_same = again.lines().filter(is_of_program).eq(first.lines().filter(is_of_program));
        assert!(is_same, "{again}\n{first}");
    }
    // Allocated minus freed blocks of one second.
    let growth = std::thread::spawn(|| dmd::pprof::heap("seconds=1"));
    std::thread::sleep(std::time::Duration::from_millis(500));
    drop(blocks);
    let answer = growth.join().unwrap();
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    let profile = unpacked(&answer.body);
    let gone = varint((-4_008_000_i64).cast_unsigned());
    assert!(profile.windows(gone.len()).any(|part| part == gone));
}

/// Waits until the thread that started this test sleeps, because it allocates until then.
fn wait_for_harness() {
    let main = format!("{}/task/{0}", std::process::id());
    let own = std::fs::read_link("/proc/thread-self").expect("Linux says which thread this is");
    // With a single thread the harness runs tests on the main thread.
    if own.as_os_str() == main.as_str() {
        return;
    }
    let sleeps = || {
        let status = std::fs::read_to_string(format!("/proc/{main}/status"));
        status.expect("the harness lives").contains("\nState:\tS")
    };
    while !sleeps() {
        std::thread::yield_now();
    }
}

fn unpacked(body: &[u8]) -> Vec<u8> {
    let mut profile = Vec::new();
    flate2::read::GzDecoder::new(body).read_to_end(&mut profile).expect("it is gzipped");
    profile
}

/// Returns a number in the encoding of a profile.
fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let [low, ..] = (value & 0x7f).to_le_bytes();
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}
