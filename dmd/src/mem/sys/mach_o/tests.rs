//! Headers made by hand: valid ones, and ones that lie.
#![expect(clippy::cast_possible_truncation, reason = "small sizes, and addresses of 64 bits")]

use proptest::prelude::*;

use super::*;

/// Returns a header with these load commands, which states these numbers about them.
fn image_that_states(commands: &[Vec<u8>], count: usize, size: usize) -> Vec<u8> {
    let words = [MAGIC, 0x0100_000c, 0, EXECUTE, count as u32, size as u32, 0x85, 0];
    let header = words.into_iter().flat_map(u32::to_ne_bytes);
    header.chain(commands.iter().flatten().copied()).collect()
}

fn image(commands: &[Vec<u8>]) -> Vec<u8> {
    image_that_states(commands, commands.len(), commands.iter().map(Vec::len).sum())
}

fn command(kind: u32, content: &[u8]) -> Vec<u8> {
    let size = 8 + content.len() as u32;
    [&kind.to_ne_bytes(), &size.to_ne_bytes(), content].concat()
}

/// The address, the size, the offset in the file and the size there.
type Place = [u64; 4];

fn segment(name: &str, place: Place, protection: u32) -> Vec<u8> {
    let mut content = vec![0; 16];
    content[..name.len()].copy_from_slice(name.as_bytes());
    content.extend(place.into_iter().flat_map(u64::to_ne_bytes));
    // The most that it may get, its protection, its sections, and flags.
    content.extend([7, protection, 0, 0].into_iter().flat_map(u32::to_ne_bytes));
    command(SEGMENT_64, &content)
}

fn function_starts_at(offset: u32, size: u32) -> Vec<u8> {
    command(FUNCTION_STARTS, &[offset.to_ne_bytes(), size.to_ne_bytes()].concat())
}

const BASE: u64 = 0x1_0000_0000;
const SLIDE: usize = 0x40_0000;

/// A program as Apple's linker lays it out.
fn program() -> Vec<u8> {
    image(&[
        segment("__PAGEZERO", [0, BASE, 0, 0], 0),
        segment("__TEXT", [BASE, 0x8000, 0, 0x8000], 5),
        segment("__DATA_CONST", [BASE + 0x8000, 0x4000, 0x8000, 0x4000], 3),
        segment("__DATA", [BASE + 0xc000, 0x4000, 0xc000, 0], 3),
        segment("__LINKEDIT", [BASE + 0x1_0000, 0x4000, 0xc000, 0x1234], 1),
        command(UUID, &[7; 16]),
        // A command that is not read.
        command(0x32, &[0; 16]),
        function_starts_at(0xc100, 0x20),
    ])
}

#[test]
fn a_program_has_its_segments_its_uuid_and_its_functions() {
    let bytes = program();
    assert_eq!(length(&bytes[..HEADER]), Some(bytes.len()));
    let image = Image::read(&bytes).expect("it is an image");
    assert!(image.is_program);
    assert_eq!(image.uuid(), Some(&[7; 16][..]));
    let found: Vec<_> = image
        .segments()
        .map(|found| {
            let name = String::from_utf8_lossy(found.name).into_owned();
            (name, found.range(SLIDE).unwrap(), found.is_writable(), found.is_executable())
        })
        .collect();
    let start = BASE as usize + SLIDE;
    let expected = [
        ("__TEXT", (start, start + 0x8000), false, true),
        ("__DATA_CONST", (start + 0x8000, start + 0xc000), true, false),
        ("__DATA", (start + 0xc000, start + 0x1_0000), true, false),
    ]
    .map(|(name, range, is_writable, is_executable)| {
        (name.to_owned(), range, is_writable, is_executable)
    });
    assert_eq!(found, expected);
    assert_eq!(image.function_list(SLIDE), Some((start + 0x1_0100, start + 0x1_0120)));
}

#[test]
fn other_files_are_no_images() {
    let mut bytes = program();
    for at in 0..HEADER {
        assert!(Image::read(&bytes[..at]).is_none(), "{at} bytes");
    }
    // The last byte of the commands is missing.
    assert!(Image::read(&bytes[..bytes.len() - 1]).is_none());
    // The other byte order, and 32 bits.
    for magic in [MAGIC.swap_bytes(), 0xfeed_face, 0] {
        bytes[..4].copy_from_slice(&magic.to_ne_bytes());
        assert!(Image::read(&bytes).is_none(), "{magic:x}");
    }
}

#[test]
fn commands_end_where_they_do_not_fit() {
    let names = |bytes: &[u8]| -> Vec<String> {
        let image = Image::read(bytes).expect("it has a header");
        image.segments().map(|found| String::from_utf8_lossy(found.name).into_owned()).collect()
    };
    let text = segment("__TEXT", [BASE, 0x8000, 0, 0x8000], 5);
    let data = segment("__DATA", [BASE + 0x8000, 0x4000, 0x8000, 0], 3);
    let two = [text.clone(), data.clone()];
    let size = 2 * text.len();
    for (count, size, expected) in [
        (2, size, 2),
        // More commands than there are, and fewer.
        (usize::from(u16::MAX), size, 2),
        (1, size, 1),
        (0, size, 0),
        // The second is cut.
        (2, size - 1, 1),
        (2, text.len() + 4, 1),
        (2, 0, 0),
    ] {
        let found = names(&image_that_states(&two, count, size));
        assert_eq!(found, ["__TEXT", "__DATA"][..expected], "{count} {size}");
    }
    // Sizes that lead nowhere: below that of kind and size, beyond the end, and a short segment.
    for stated in [0_u32, 4, 7, u32::MAX, 1 << 31] {
        let mut other = data.clone();
        other[4..8].copy_from_slice(&stated.to_ne_bytes());
        assert_eq!(names(&image(&[text.clone(), other, data.clone()])), ["__TEXT"], "{stated}");
    }
    let short = command(SEGMENT_64, &data[8..60]);
    assert_eq!(names(&image(&[short, text.clone()])), ["__TEXT"]);
    // A name that fills its place has no zero at its end.
    let long = segment("__SIXTEEN_BYTES_", [BASE, 1, 0, 0], 1);
    assert_eq!(names(&image(&[long])), ["__SIXTEEN_BYTES_"]);
    assert_eq!(Image::read(&image(&[command(UUID, &[1; 15])])).unwrap().uuid(), None);
}

#[test]
fn ranges_do_not_wrap_around() {
    let range = |place: Place, slide: usize| {
        let bytes = image(&[segment("__DATA", place, 3)]);
        Image::read(&bytes).unwrap().segments().next().unwrap().range(slide)
    };
    assert_eq!(range([0x4000, 0x1000, 0, 0], 0), Some((0x4000, 0x5000)));
    // The shared cache may lie below its addresses in files.
    assert_eq!(range([0x4000, 0x1000, 0, 0], 0x3000_usize.wrapping_neg()), Some((0x1000, 0x2000)));
    assert_eq!(range([0x4000, u64::MAX, 0, 0], 0), None);
    assert_eq!(range([u64::MAX, 2, 0, 0], 0), None);
}

#[test]
fn the_list_of_functions_lies_in_its_segment() {
    let list = |place: Place, offset: u32, size: u32| {
        let link_edit = segment("__LINKEDIT", place, 1);
        let bytes = image(&[link_edit, function_starts_at(offset, size)]);
        Image::read(&bytes).unwrap().function_list(0)
    };
    let place = [0x9000, 0x4000, 0x5000, 0x3000];
    assert_eq!(list(place, 0x5000, 0x3000), Some((0x9000, 0xc000)));
    assert_eq!(list(place, 0x5000, 0x3001), None);
    assert_eq!(list(place, 0x4fff, 1), None);
    assert_eq!(list(place, 0x8000, 1), None);
    assert_eq!(list(place, u32::MAX, u32::MAX), None);
    // Of the file's bytes, fewer are mapped.
    assert_eq!(list([0x9000, 0x1000, 0x5000, 0x3000], 0x5800, 0x900), None);
    assert_eq!(list([u64::MAX, 0x4000, 0x5000, 0x3000], 0x5001, 1), None);
    let without_segment = image(&[function_starts_at(0, 0)]);
    assert_eq!(Image::read(&without_segment).unwrap().function_list(0), None);
}

#[test]
fn functions_are_at_the_sums_of_distances() {
    let starts = |list: &[u8]| function_starts(list).collect::<Vec<_>>();
    assert_eq!(starts(&[0x80, 0x20, 0x10, 0x04, 0, 0]), [0x1000, 0x1010, 0x1014]);
    assert!(starts(&[]).is_empty());
    // What is behind the end does not count.
    assert_eq!(starts(&[8, 0, 8]), [8]);
    // Cut, too long, and beyond 4 GiB.
    assert_eq!(starts(&[8, 0x80]), [8]);
    assert_eq!(starts(&[8, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1]), [8]);
    assert_eq!(starts(&[0xff, 0xff, 0xff, 0xff, 0x0f]), [u32::MAX]);
    assert_eq!(starts(&[0xff, 0xff, 0xff, 0xff, 0x0f, 1]), [u32::MAX]);
    assert!(starts(&[0xff, 0xff, 0xff, 0xff, 0x1f]).is_empty());
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(
        commands in prop::collection::vec(any::<u8>(), 0..400),
        count in any::<u32>(),
        changes in prop::collection::vec((0_usize..700, any::<u8>()), 0..8),
        slide in any::<usize>(),
    ) {
        let foreign = image_that_states(std::slice::from_ref(&commands), count as usize, commands.len());
        let mut changed = program();
        for (at, byte) in changes {
            let length = changed.len();
            changed[at % length] = byte;
        }
        for bytes in [foreign, changed] {
            let Some(image) = Image::read(&bytes) else { continue };
            for segment in image.segments() {
                if let Some((low, high)) = segment.range(slide) {
                    prop_assert!(low <= high);
                }
            }
            if let Some((low, high)) = image.function_list(slide) {
                prop_assert!(low <= high);
            }
            image.uuid();
        }
        let starts: Vec<u32> = function_starts(&commands).collect();
        prop_assert!(starts.is_sorted());
    }
}
