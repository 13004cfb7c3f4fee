//! Keys that are the same for each server. redis-benchmark draws others in each run, by the time
//! and its process number, and so sometimes the same ones twice.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::thread;

use super::{CLIENTS, KEYS, REQUESTS, Server, VALUE};
use crate::failure::Failure;
use crate::generate::random::Random;

/// A command of the server.
#[derive(Clone, Copy)]
enum Request {
    Set,
    Get,
}

impl Server {
    /// Sets random keys, and then gets random ones, as many as in a round of redis-benchmark. In
    /// the same round, each server gets the same requests.
    pub(in crate::foreign) fn fill(&self, round: u32) -> Result<(), Failure> {
        for request in [Request::Set, Request::Get] {
            let seed = |client| u64::from((round * 2 + request as u32) * CLIENTS + client);
            thread::scope(|scope| {
                let clients = (0..CLIENTS).map(|client| {
                    scope.spawn(move || send(self.port, request, &mut Random::new(seed(client))))
                });
                // All are started before the first one is waited for.
                let clients: Vec<_> = clients.collect();
                clients.into_iter().try_for_each(|client| {
                    client.join().unwrap_or_else(|_| Err(io::Error::other("a client panicked")))
                })
            })?;
        }
        Ok(())
    }
}

/// Sends one client's share of the requests, with keys drawn from `random`. Each waits for its
/// answer, as those of redis-benchmark do.
fn send(port: u16, request: Request, random: &mut Random) -> io::Result<()> {
    let mut server = TcpStream::connect(("127.0.0.1", port))?;
    server.set_nodelay(true)?;
    let mut answers = BufReader::new(server.try_clone()?);
    let value = [b'x'; VALUE as usize];
    let mut bytes = Vec::new();
    for _ in 0..REQUESTS / CLIENTS {
        let key = format!("key:{:012}", random.below(KEYS.into()));
        bytes.clear();
        match request {
            Request::Set => append_request(&mut bytes, &[b"SET", key.as_bytes(), &value])?,
            Request::Get => append_request(&mut bytes, &[b"GET", key.as_bytes()])?,
        }
        server.write_all(&bytes)?;
        read_answer(&mut answers)?;
    }
    Ok(())
}

/// Appends a request in the protocol of Redis:
/// <https://redis.io/docs/latest/develop/reference/protocol-spec>.
fn append_request(to: &mut Vec<u8>, words: &[&[u8]]) -> io::Result<()> {
    write!(to, "*{}\r\n", words.len())?;
    for word in words {
        write!(to, "${}\r\n", word.len())?;
        to.extend_from_slice(word);
        to.extend_from_slice(b"\r\n");
    }
    Ok(())
}

/// Reads an answer: a line, behind which a value follows if it has a length.
fn read_answer(answers: &mut impl BufRead) -> io::Result<()> {
    let mut line = String::new();
    answers.read_line(&mut line)?;
    let length = line.strip_prefix('$').and_then(|length| length.trim_end().parse::<u64>().ok());
    match length {
        Some(length) => {
            let with_end = length + 2;
            let read = io::copy(&mut answers.take(with_end), &mut io::sink())?;
            if read == with_end { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
        }
        None if line == "+OK\r\n" || line == "$-1\r\n" => Ok(()),
        None => Err(io::Error::other(format!("the server answered {line:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_whole_and_errors_are_passed_on() {
        let mut answers = &b"+OK\r\n$3\r\nabc\r\n$-1\r\n-ERR no\r\n"[..];
        for _ in 0..3 {
            read_answer(&mut answers).expect("a good answer");
        }
        let error = read_answer(&mut answers).expect_err("an error of the server");
        assert!(error.to_string().contains("no"), "{error}");
        let cut = read_answer(&mut &b"$3\r\na"[..]).expect_err("a cut answer");
        assert_eq!(cut.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_request_has_the_lengths_of_its_words() {
        let mut request = Vec::new();
        append_request(&mut request, &[b"GET", b"key:1"]).expect("a vector takes all");
        assert_eq!(request, b"*2\r\n$3\r\nGET\r\n$5\r\nkey:1\r\n");
    }
}
