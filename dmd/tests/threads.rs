//! Tests programs that start threads without end.

use std::fs;
use std::hint::black_box;

use memreport_analysis::read::read_file;

dmd::global_allocator!();

#[test]
fn ended_threads_share_numbers_and_a_dump_states_it() {
    dmd::start(dmd::Options::default()).expect("the allocator is declared");
    let kept = |size: usize| {
        let thread = std::thread::spawn(move || black_box(vec![1_u8; size]));
        thread.join().expect("it does not panic")
    };
    let first = kept(77_001);
    let many: Vec<_> = (0..3000).map(|_| kept(77_002)).collect();
    let own = black_box(vec![1_u8; 77_003]);
    let folder = std::env::temp_dir().join(format!("dmd-threads-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    memreport::snapshot().save(folder.join("report.json")).expect("it is saved");
    let dump = read_file(&folder.join("report.dmd.json")).expect("it is a dump");
    fs::remove_dir_all(&folder).expect("it was made above");
    drop((first, many, own));

    let threads = &dump.extension.as_ref().expect("it is ours").threads;
    assert!(threads.len() < 1100, "{} threads", threads.len());
    let of_size = |size: u64| {
        let blocks = dump.blocks.iter().filter(move |block| block.req == size);
        blocks.map(|block| (block.num, block.kind.thread)).collect::<Vec<_>>()
    };
    let blocks: u64 = of_size(77_002).iter().map(|(num, _)| *num).sum();
    assert_eq!(blocks, 3000);
    let name = |thread: Option<u32>| {
        let thread = threads.iter().find(|known| Some(known.id) == thread)?;
        thread.name.clone()
    };
    let shared = of_size(77_002).iter().filter_map(|(_, thread)| name(*thread)).count();
    let ended = name(of_size(77_002)[900].1).unwrap_or_default();
    assert!(shared > 500 && ended.ends_with(" ended threads"), "{shared} {ended}");
    // A thread that lives keeps its number.
    let own = name(of_size(77_003)[0].1).unwrap_or_default();
    assert!(!own.is_empty() && !own.ends_with(" ended threads"), "{own}");
}
