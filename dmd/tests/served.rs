//! The running program's heap as an endpoint serves it: it has what lives, and nothing of its own making.

use std::io::Read;

dmd::global_allocator!();

const COUNT: usize = 1000;

#[inline(never)]
fn kept() -> Vec<Box<[u8]>> {
    (0..COUNT).map(|_| vec![1; 4000].into()).collect()
}

/// One test: what lives in this process is counted to the byte.
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
    assert!(first.contains("ƒ served::kept"), "{first}");
    // Profiles and what was looked up for them are megabytes of the heap meanwhile and after, and are no part of it.
    for _ in 0..2 {
        let answer = dmd::pprof::allocs("gc=1");
        assert_eq!((answer.status, answer.content_type), (200, "application/octet-stream"));
        let profile = unpacked(&answer.body);
        let has = |text: &str| profile.windows(text.len()).any(|part| part == text.as_bytes());
        assert!(has("served::kept") && has("inuse_space") && !has("alloc_space"));
        drop((answer, profile));
        let again = text();
        // Only the tables grow, with all that is allocated meanwhile.
        let is_of_program = |line: &&str| !line.contains("in the tracker's own tables");
        let is_same = again.lines().filter(is_of_program).eq(first.lines().filter(is_of_program));
        assert!(is_same, "{again}\n{first}");
    }
    // What has come and what has gone within a second is what grows.
    let growth = std::thread::spawn(|| dmd::pprof::heap("seconds=1"));
    std::thread::sleep(std::time::Duration::from_millis(500));
    drop(blocks);
    let answer = growth.join().unwrap();
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    let profile = unpacked(&answer.body);
    let gone = varint((-4_008_000_i64).cast_unsigned());
    assert!(profile.windows(gone.len()).any(|part| part == gone));
}

/// Waits until the thread that began this test sleeps: until then it makes blocks to wait with.
fn wait_for_harness() {
    let main = format!("{}/task/{0}", std::process::id());
    let own = std::fs::read_link("/proc/thread-self").expect("Linux says which thread this is");
    // With a single thread the harness runs tests on its own.
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

/// As the profile has numbers.
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
