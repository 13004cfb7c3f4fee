//! A program with leaks, for tools that look for them: `leaks SEED [none]`.
//!
//! It builds forty small structures that are held in different ways, and, unless `none` is given,
//! up to twenty that nothing refers to. It prints the number of leaked blocks, their requested and
//! their usable bytes, and waits for the end of its input.
//!
//! It needs no crate, so that the compiler alone can build it under `LeakSanitizer`.
#![allow(unsafe_code, reason = "leaks by hand, and blocks of C")]

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::c_void;
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

unsafe extern "C" {
    fn malloc(bytes: usize) -> *mut c_void;
    fn malloc_usable_size(block: *mut c_void) -> usize;
}

type Items = Vec<Box<dyn Send>>;

static HELD: Mutex<Items> = Mutex::new(Vec::new());
static TABLE: Mutex<Option<HashMap<u64, Box<[u8]>>>> = Mutex::new(None);
static TREE: Mutex<BTreeMap<u64, Vec<u64>>> = Mutex::new(BTreeMap::new());
static QUEUE: Mutex<VecDeque<Box<u64>>> = Mutex::new(VecDeque::new());
static BY_HAND: [AtomicPtr<c_void>; 40] = [const { AtomicPtr::new(ptr::null_mut()) }; 40];

thread_local! {
    static OF_THREAD: RefCell<Vec<Rc<str>>> = const { RefCell::new(Vec::new()) };
}

/// A node of a list, of a cycle, or of a tree with pointers back.
struct Node {
    next: RefCell<Option<Rc<Node>>>,
    _payload: Box<[u8]>,
}

/// A node of a list that is linked by hand in both directions.
struct Linked {
    next: *mut Linked,
    previous: *mut Linked,
}

/// Random numbers.
struct Random(u64);

impl Random {
    /// Returns a number below `end`.
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0) % end
    }
}

/// The leaked blocks.
#[derive(Default)]
struct Leaked {
    blocks: usize,
    requested: usize,
    usable: usize,
}

impl Leaked {
    /// Counts a block.
    fn add<T: ?Sized>(&mut self, block: *const T, requested: usize) {
        self.blocks += 1;
        self.requested += requested;
        // SAFETY: a live block of the C library.
        self.usable += unsafe { malloc_usable_size(block.cast_mut().cast()) };
    }
}

fn main() -> io::Result<()> {
    let mut words = std::env::args().skip(1);
    let seed: u64 = words.next().and_then(|word| word.parse().ok()).unwrap_or(1);
    let leaks = words.next().as_deref() != Some("none");
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (send, wait) = mpsc::channel::<()>();
    let mut threads = Vec::new();
    hold_all(&mut random, &mut threads, wait);
    let mut leaked = Leaked::default();
    if leaks {
        for _ in 0..=random.below(20) {
            leak(&mut random, &mut leaked);
        }
    }
    scrub();
    let mut out = io::stdout();
    writeln!(out, "{} {} {}", leaked.blocks, leaked.requested, leaked.usable)?;
    out.flush()?;
    io::stdin().read_to_end(&mut Vec::new())?;
    drop(send);
    for thread in threads {
        drop(thread.join());
    }
    Ok(())
}

fn bytes(random: &mut Random) -> Box<[u8]> {
    vec![7; 1 + random.below(500)].into()
}

/// Builds what is held: from statics, by hand, by this thread, and by the stack of another.
#[inline(never)]
fn hold_all(
    random: &mut Random,
    threads: &mut Vec<thread::JoinHandle<()>>,
    wait: mpsc::Receiver<()>,
) {
    TABLE.lock().expect("nobody panics").get_or_insert_default();
    for (by_hand, key) in BY_HAND.iter().zip(0_u64..) {
        match random.below(7) {
            0 => HELD.lock().expect("nobody panics").push(Box::new(bytes(random))),
            1 => {
                let mut table = TABLE.lock().expect("nobody panics");
                table.get_or_insert_default().insert(key, bytes(random));
            }
            2 => {
                let values = vec![key; 1 + random.below(30)];
                TREE.lock().expect("nobody panics").insert(key, values);
            }
            3 => QUEUE.lock().expect("nobody panics").push_back(Box::new(key)),
            4 => {
                // SAFETY: a plain call.
                let block = unsafe { malloc(1 + random.below(300)) };
                by_hand.store(block, Ordering::Relaxed);
            }
            5 => OF_THREAD.with_borrow_mut(|held| held.push("text of a thread".into())),
            _ => {
                let shared: Arc<[u8]> = Arc::from(bytes(random));
                HELD.lock().expect("nobody panics").push(Box::new((Arc::clone(&shared), shared)));
            }
        }
    }
    threads.push(thread::spawn(move || {
        let own: Vec<Box<u64>> = (0..10).map(Box::new).collect();
        let _ended = wait.recv();
        black_box(own);
    }));
}

/// Builds one structure that nothing refers to.
#[inline(never)]
fn leak(random: &mut Random, leaked: &mut Leaked) {
    match random.below(5) {
        // A forgotten box, or a vector of them.
        0 => {
            let block = Box::into_raw(bytes(random));
            leaked.add(block, block.len());
        }
        1 => {
            let list: Vec<Box<u64>> = (0..1 + random.below(9) as u64).map(Box::new).collect();
            list.iter().for_each(|one| leaked.add(&raw const **one, 8));
            leaked.add(list.as_ptr(), list.capacity() * 8);
            let _leaked = list.leak();
        }
        // A cycle of counted nodes, each with a block of its own.
        2 => {
            let node = |next, random: &mut Random, leaked: &mut Leaked| {
                let payload = bytes(random);
                leaked.add(payload.as_ptr(), payload.len());
                let node = Rc::new(Node { next: RefCell::new(next), _payload: payload });
                // The counts are before the value.
                leaked.add(Rc::as_ptr(&node).wrapping_byte_sub(16), 16 + size_of::<Node>());
                node
            };
            let first = node(None, random, leaked);
            let mut last = Rc::clone(&first);
            for _ in 0..random.below(5) {
                last = node(Some(last), random, leaked);
            }
            first.next.replace(Some(last));
        }
        // A list in both directions, detached from its head.
        3 => {
            let mut previous: *mut Linked = ptr::null_mut();
            for _ in 0..1 + random.below(6) {
                let node = Box::into_raw(Box::new(Linked { next: ptr::null_mut(), previous }));
                leaked.add(node, size_of::<Linked>());
                // SAFETY: null, or a node of this list.
                if let Some(previous) = unsafe { previous.as_mut() } {
                    previous.next = node;
                }
                previous = node;
            }
            // SAFETY: a node of this list.
            black_box(unsafe { (*previous).previous.is_null() });
        }
        // A block of C.
        _ => {
            let size = 1 + random.below(400);
            // SAFETY: a plain call.
            let block = unsafe { malloc(size) };
            leaked.add(black_box(block), size);
        }
    }
}

/// Overwrites what the functions before have left on the stack.
#[inline(never)]
fn scrub() {
    black_box([0_u8; 1 << 16]);
}
