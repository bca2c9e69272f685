//! Decompresses zlib streams (RFC 1950 and 1951), as strictly as zlib: what one of the two accepts and the other doesn't would be
//! looked at as something else than what Git reads.

use std::io::{BufReader, Bytes, Read};

/// How far back a copy may begin.
const WINDOW: usize = 32 << 10;

/// Maximum length of a code in bits.
const LONGEST_CODE: usize = 15;

/// Order in which the lengths of the code for lengths are stored.
const LENGTH_ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

const LENGTH_BASE: [u16; 29] = [
    3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195,
    227, 258,
];
const LENGTH_EXTRA: [u8; 29] =
    [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
const DISTANCE_BASE: [u16; 30] = [
    1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073,
    4097, 6145, 8193, 12289, 16385, 24577,
];
const DISTANCE_EXTRA: [u8; 30] =
    [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13];

/// Decompresses a whole stream into `to`, portion by portion. Returns `None` if it is no complete stream, if something follows it, or
/// if it holds more than `most` bytes.
pub(super) fn inflate(from: impl Read, most: u64, to: &mut dyn FnMut(&[u8])) -> Option<()> {
    let mut bits = Bits { from: BufReader::new(from).bytes(), held: 0, count: 0 };
    let (method, flags) = (bits.take(8)?, bits.take(8)?);
    let has_dictionary = flags & 0x20 != 0;
    if method & 0xf != 8 || method >> 4 > 7 || has_dictionary || (method << 8 | flags) % 31 != 0 {
        return None;
    }
    let mut output = Output { window: Vec::with_capacity(2 * WINDOW), sent: 0, left: most, sum: (1, 0), to };
    loop {
        let is_last = bits.take(1)? == 1;
        match bits.take(2)? {
            0 => stored(&mut bits, &mut output)?,
            1 => coded(&mut bits, &mut output, &fixed()?)?,
            2 => {
                let codes = dynamic(&mut bits)?;
                coded(&mut bits, &mut output, &codes)?;
            }
            _ => return None,
        }
        if is_last {
            break;
        }
    }
    let sum = output.finish();
    bits.align();
    let stored = (0..4).try_fold(0_u32, |sum, _| Some(sum << 8 | bits.take(8)?))?;
    (stored == sum && bits.is_at_end()).then_some(())
}

struct Bits<R> {
    from: Bytes<BufReader<R>>,
    held: u32,
    count: u32,
}

/// What was decompressed: as much of it as copies may need, and its checksum.
struct Output<'a> {
    window: Vec<u8>,
    /// How much of the window was passed on.
    sent: usize,
    left: u64,
    /// Adler-32.
    sum: (u32, u32),
    to: &'a mut dyn FnMut(&[u8]),
}

/// A canonical Huffman code.
struct Code {
    /// How many symbols have a code of each length.
    counts: [u16; LONGEST_CODE + 1],
    /// The symbols in the order of their codes.
    symbols: Vec<u16>,
    /// Whether each sequence of bits is the begin of one.
    is_complete: bool,
}

struct Codes {
    lengths: Code,
    distances: Code,
}

// === impl Bits ===

impl<R: Read> Bits<R> {
    fn take(&mut self, count: u32) -> Option<u32> {
        while self.count < count {
            self.held |= u32::from(self.from.next()?.ok()?) << self.count;
            self.count += 8;
        }
        let taken = self.held & ((1 << count) - 1);
        self.held >>= count;
        self.count -= count;
        Some(taken)
    }

    /// Drops the rest of a byte. No whole byte is ever held.
    fn align(&mut self) {
        (self.held, self.count) = (0, 0);
    }

    fn is_at_end(&mut self) -> bool {
        self.from.next().is_none()
    }
}

// === impl Output ===

impl Output<'_> {
    fn put(&mut self, byte: u8) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        if self.window.len() == 2 * WINDOW {
            self.send();
            self.window.drain(..WINDOW);
            self.sent = WINDOW;
        }
        self.window.push(byte);
        Some(())
    }

    fn copy(&mut self, distance: usize, length: usize) -> Option<()> {
        for _ in 0..length {
            let at = self.window.len().checked_sub(distance)?;
            let byte = *self.window.get(at)?;
            self.put(byte)?;
        }
        Some(())
    }

    fn send(&mut self) {
        let new = self.window.get(self.sent..).unwrap_or_default();
        for byte in new {
            self.sum.0 = (self.sum.0 + u32::from(*byte)) % 65521;
            self.sum.1 = (self.sum.1 + self.sum.0) % 65521;
        }
        (self.to)(new);
        self.sent = self.window.len();
    }

    fn finish(mut self) -> u32 {
        self.send();
        self.sum.1 << 16 | self.sum.0
    }
}

// === impl Code ===

impl Code {
    /// Returns `None` if the lengths are those of no code.
    fn new(lengths: &[u8]) -> Option<Self> {
        let mut counts = [0; LONGEST_CODE + 1];
        for length in lengths {
            *counts.get_mut(usize::from(*length))? += 1;
        }
        let mut left = 1_i32;
        for count in &counts[1..] {
            left = 2 * left - i32::from(*count);
            if left < 0 {
                return None;
            }
        }
        let mut symbols: Vec<u16> =
            (0..).zip(lengths).filter(|(_, length)| **length != 0).map(|(at, _)| at).collect();
        symbols.sort_by_key(|symbol| lengths.get(usize::from(*symbol)));
        Some(Self { counts, symbols, is_complete: left == 0 })
    }

    /// Returns true for one code of one bit, which is the only one that may be incomplete, and for none at all.
    fn is_single(&self) -> bool {
        self.symbols.is_empty() || (self.symbols.len() == 1 && self.counts[1] == 1)
    }

    fn read(&self, bits: &mut Bits<impl Read>) -> Option<u16> {
        let (mut code, mut first, mut index) = (0_i32, 0_i32, 0_i32);
        for count in &self.counts[1..] {
            code |= i32::try_from(bits.take(1)?).ok()?;
            let count = i32::from(*count);
            if code - count < first {
                return self.symbols.get(usize::try_from(index + code - first).ok()?).copied();
            }
            index += count;
            first = (first + count) << 1;
            code <<= 1;
        }
        None
    }
}

fn stored(bits: &mut Bits<impl Read>, output: &mut Output<'_>) -> Option<()> {
    bits.align();
    let (length, check) = (bits.take(16)?, bits.take(16)?);
    if length != !check & 0xffff {
        return None;
    }
    (0..length).try_for_each(|_| output.put(u8::try_from(bits.take(8)?).ok()?))
}

fn coded(bits: &mut Bits<impl Read>, output: &mut Output<'_>, codes: &Codes) -> Option<()> {
    loop {
        match codes.lengths.read(bits)? {
            256 => return Some(()),
            literal @ 0..256 => output.put(u8::try_from(literal).ok()?)?,
            symbol => {
                let length = extended(bits, (&LENGTH_BASE, &LENGTH_EXTRA), symbol - 257)?;
                let symbol = codes.distances.read(bits)?;
                let distance = extended(bits, (&DISTANCE_BASE, &DISTANCE_EXTRA), symbol)?;
                if distance > WINDOW {
                    return None;
                }
                output.copy(distance, length)?;
            }
        }
    }
}

fn extended(bits: &mut Bits<impl Read>, (base, extra): (&[u16], &[u8]), symbol: u16) -> Option<usize> {
    let at = usize::from(symbol);
    let more = bits.take(u32::from(*extra.get(at)?))?;
    Some(usize::from(*base.get(at)?) + usize::try_from(more).ok()?)
}

fn fixed() -> Option<Codes> {
    let lengths: Vec<u8> = (0..288)
        .map(|symbol| match symbol {
            144..256 => 9,
            256..280 => 7,
            _ => 8,
        })
        .collect();
    Some(Codes { lengths: Code::new(&lengths)?, distances: Code::new(&[5; 30])? })
}

fn dynamic(bits: &mut Bits<impl Read>) -> Option<Codes> {
    let mut count = |bits_of: u32, least: usize| Some(usize::try_from(bits.take(bits_of)?).ok()? + least);
    let (literals, distances, stored) = (count(5, 257)?, count(5, 1)?, count(4, 4)?);
    if literals > 286 || distances > 30 {
        return None;
    }
    let mut of_lengths = [0; 19];
    for at in LENGTH_ORDER.iter().take(stored) {
        *of_lengths.get_mut(*at)? = u8::try_from(bits.take(3)?).ok()?;
    }
    let code = Code::new(&of_lengths).filter(|code| code.is_complete)?;
    let mut lengths: Vec<u8> = Vec::with_capacity(literals + distances);
    while lengths.len() < literals + distances {
        let (length, times) = match code.read(bits)? {
            16 => (*lengths.last()?, 3 + bits.take(2)?),
            17 => (0, 3 + bits.take(3)?),
            18 => (0, 11 + bits.take(7)?),
            length => (u8::try_from(length).ok()?, 1),
        };
        lengths.extend((0..times).map(|_| length));
    }
    if lengths.len() > literals + distances || *lengths.get(256)? == 0 {
        return None;
    }
    let (of_literals, of_distances) = lengths.split_at(literals);
    let is_allowed = |code: &Code| code.is_complete || code.is_single();
    let lengths = Code::new(of_literals).filter(is_allowed)?;
    let distances = Code::new(of_distances).filter(is_allowed)?;
    Some(Codes { lengths, distances })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn inflated(bytes: &[u8], most: u64) -> Option<Vec<u8>> {
        let mut all = Vec::new();
        inflate(bytes, most, &mut |portion| all.extend_from_slice(portion)).map(|()| all)
    }

    /// `a` 100 times, by the fixed code, as zlib writes it.
    const REPEATED: [u8; 12] = [0x78, 0x01, 0x4b, 0x4c, 0xa4, 0x3d, 0x00, 0x00, 0x7a, 0x47, 0x25, 0xe5];

    #[test]
    fn a_stream_is_inflated_up_to_the_maximum() {
        assert_eq!(inflated(&REPEATED, 100), Some(vec![b'a'; 100]));
        assert_eq!(inflated(&REPEATED, 99), None);
    }

    proptest! {
        #[test]
        fn a_stream_with_another_bit_is_none_or_says_the_same(at in 0..REPEATED.len(), bit in 0..8_u8) {
            let mut bytes = REPEATED;
            bytes[at] ^= 1 << bit;
            let other = inflated(&bytes, 1000);
            prop_assert!(other.is_none() || other == Some(vec![b'a'; 100]), "{other:?}");
        }

        #[test]
        fn whatever_comes_is_read_to_its_end(bytes in prop::collection::vec(any::<u8>(), 0..400), method in 0..3_u8) {
            let header = [0x78, 0x9c, bytes.first().copied().unwrap_or_default() & 0xf8 | method << 1 | 1];
            let _ = inflated(&[&header[..], &bytes].concat(), 1 << 20);
        }
    }
}
