//! The headers of Mach-O images: segments, the UUID of the build, and the list of functions.
//!
//! The bytes may be anything: what does not fit is left out, and nothing is read twice.

/// The size of a header, before the load commands.
pub(super) const HEADER: usize = 32;

/// The magic number of images of 64 bits, in the byte order of the machine.
const MAGIC: u32 = 0xfeed_facf;

/// The file type of programs.
const EXECUTE: u32 = 2;

/// Load commands, by `mach-o/loader.h`.
const SEGMENT_64: u32 = 0x19;
const UUID: u32 = 0x1b;
const FUNCTION_STARTS: u32 = 0x26;

/// Bits of a segment's protection.
const WRITE: u32 = 2;
const EXECUTABLE: u32 = 4;

/// The segment of symbols and signatures, which libraries share, and which has no code or data.
const LINK_EDIT: &[u8] = b"__LINKEDIT";

/// The header of an image, and its load commands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Image<'bytes> {
    commands: &'bytes [u8],
    count: u32,
    pub(super) is_program: bool,
}

/// A segment, with its address in the file: the slide is added to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment<'bytes> {
    /// The name, without the zeros at its end.
    pub(super) name: &'bytes [u8],
    address: u64,
    size: u64,
    file_offset: u64,
    file_size: u64,
    protection: u32,
}

/// A part of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    offset: u64,
    size: u64,
}

/// Returns the bytes of a header with its load commands, from its first [`HEADER`] bytes.
pub(super) fn length(header: &[u8]) -> Option<usize> {
    let is_image = header.len() >= HEADER && word(header, 0)? == MAGIC;
    is_image.then_some(())?;
    HEADER.checked_add(usize::try_from(word(header, 20)?).ok()?)
}

impl<'bytes> Image<'bytes> {
    /// Reads a header with its load commands.
    pub(super) fn read(bytes: &'bytes [u8]) -> Option<Self> {
        let commands = bytes.get(HEADER..length(bytes)?)?;
        let is_program = word(bytes, 12)? == EXECUTE;
        Some(Image { commands, count: word(bytes, 16)?, is_program })
    }

    /// Returns the load commands, up to the first one that does not fit.
    fn commands(self) -> impl Iterator<Item = (u32, &'bytes [u8])> {
        let (mut rest, mut count) = (self.commands, self.count);
        std::iter::from_fn(move || {
            count = count.checked_sub(1)?;
            let (kind, size) = (word(rest, 0)?, usize::try_from(word(rest, 4)?).ok()?);
            // Each has at least its kind and size.
            let (command, behind) = rest.split_at_checked(size).filter(|_| size >= 8)?;
            rest = behind;
            Some((kind, command))
        })
    }

    fn all_segments(self) -> impl Iterator<Item = Segment<'bytes>> {
        self.commands().filter(|(kind, _)| *kind == SEGMENT_64).filter_map(|(_, command)| {
            let name = command.get(8..24)?;
            let length = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
            Some(Segment {
                name: &name[..length],
                address: long(command, 24)?,
                size: long(command, 32)?,
                file_offset: long(command, 40)?,
                file_size: long(command, 48)?,
                protection: word(command, 60)?,
            })
        })
    }

    /// Returns the segments with code or data of this image.
    pub(super) fn segments(self) -> impl Iterator<Item = Segment<'bytes>> {
        // The address 0 of a program is in a segment without any protection.
        self.all_segments()
            .filter(|segment| segment.protection != 0 && segment.size != 0)
            .filter(|segment| segment.name != LINK_EDIT)
    }

    /// Returns the UUID, which the linker computes from the contents.
    pub(super) fn uuid(self) -> Option<&'bytes [u8]> {
        let (_, command) = self.commands().find(|(kind, _)| *kind == UUID)?;
        command.get(8..24)
    }

    /// Returns the address range of the list of functions in memory.
    pub(super) fn function_list(self, slide: usize) -> Option<(usize, usize)> {
        let (_, command) = self.commands().find(|(kind, _)| *kind == FUNCTION_STARTS)?;
        let (offset, size) = (u64::from(word(command, 8)?), u64::from(word(command, 12)?));
        let place = |segment: Segment<'_>| segment.part(Part { offset, size }, slide);
        self.all_segments().filter(|segment| segment.name == LINK_EDIT).find_map(place)
    }
}

impl Segment<'_> {
    pub(super) fn is_writable(&self) -> bool {
        self.protection & WRITE != 0
    }

    pub(super) fn is_executable(&self) -> bool {
        self.protection & EXECUTABLE != 0
    }

    /// Returns the address range in memory. Returns `None` if it wraps around.
    pub(super) fn range(&self, slide: usize) -> Option<(usize, usize)> {
        range(self.address, self.size, slide)
    }

    /// Returns the address range in memory of a part of the file that lies in this segment.
    fn part(&self, part: Part, slide: usize) -> Option<(usize, usize)> {
        let within = part.offset.checked_sub(self.file_offset)?;
        let end = within.checked_add(part.size)?;
        let is_mapped = end <= self.file_size && end <= self.size;
        is_mapped.then_some(())?;
        range(self.address.checked_add(within)?, part.size, slide)
    }
}

/// The slide may be negative, which wraps around.
fn range(address: u64, size: u64, slide: usize) -> Option<(usize, usize)> {
    let start = usize::try_from(address).ok()?.wrapping_add(slide);
    Some((start, start.checked_add(usize::try_from(size).ok()?)?))
}

/// Returns the first addresses of functions, as distances from the image's header, in their order.
///
/// The list has the distance of each from the one before, in LEB128, and ends with a 0.
pub(super) fn function_starts(list: &[u8]) -> impl Iterator<Item = u32> {
    let (mut rest, mut address) = (list, 0_u32);
    std::iter::from_fn(move || {
        let mut distance = 0_u32;
        for shift in (0..u32::BITS).step_by(7) {
            let (byte, behind) = rest.split_first()?;
            rest = behind;
            let bits = u32::from(byte & 0x7f);
            // An address beyond 4 GiB is none of an image.
            distance |= bits.checked_shl(shift).filter(|shifted| shifted >> shift == bits)?;
            if byte & 0x80 == 0 {
                address = address.checked_add(distance).filter(|_| distance != 0)?;
                return Some(address);
            }
        }
        None
    })
    .fuse()
}

/// Returns the word of four bytes at this offset.
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_ne_bytes)
}

/// Returns the word of eight bytes at this offset.
fn long(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at.checked_add(8)?)?.try_into().ok().map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests;
