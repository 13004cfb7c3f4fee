//! Tests text and addresses.

use compact_str::CompactString;
use dmd::assert_fully_reported;
use smol_str::SmolStr;
use url::Url;

use super::text;

#[test]
fn compact_strings() {
    for length in [0, 23, 24, 25, 100, 1 << 20] {
        assert_fully_reported!(CompactString::from(text(length)));
    }
    let mut slack = CompactString::with_capacity(1000);
    slack.push('x');
    assert_fully_reported!(slack);
    assert_fully_reported!(CompactString::const_new("a text that is longer than the value itself"));
}

#[test]
fn small_strings() {
    for length in [0, 22, 23, 24, 1000] {
        assert_fully_reported!(SmolStr::from(text(length)));
    }
    assert_fully_reported!(SmolStr::new_static("a text that is longer than the value itself"));
    let shared = SmolStr::from(text(100));
    assert_fully_reported!([shared.clone(), shared.clone(), shared]);
}

#[test]
fn addresses() {
    let mut url = Url::parse("https://example.org/a/path?with=a&query#and-a-fragment").unwrap();
    assert_fully_reported!(url.clone());
    url.set_path(&text(1000));
    url.set_path("");
    assert_fully_reported!(url);
    assert_fully_reported!(url::Host::parse("example.org").unwrap());
    assert_fully_reported!(url::Host::parse("[::1]").unwrap());
}

#[test]
fn secrets() {
    use secrecy::{SecretBox, SecretString};
    assert_fully_reported!(SecretString::from(text(40)));
    assert_fully_reported!(SecretString::from(""));
    assert_fully_reported!(SecretBox::new(Box::new(vec![1_u8; 99])));
}

#[test]
fn numbers_of_any_length() {
    use num_bigint::{BigInt, BigUint};
    let power = |exponent: u32| BigUint::from(7_u8).pow(exponent);
    assert_fully_reported!((BigUint::ZERO, power(1), power(1000)));
    assert_fully_reported!(vec![-BigInt::from(power(300)), BigInt::ZERO, BigInt::from(power(9))]);
}
