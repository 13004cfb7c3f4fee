//! Checks requests: they need the token and the server's own name, and must not come from another
//! site.

use hyper::header::{AUTHORIZATION, COOKIE, HOST, HeaderMap, HeaderName, ORIGIN};
use hyper::{Method, StatusCode, Uri};

/// The rules of one server.
#[derive(Debug)]
pub(super) struct Gate {
    port: u16,
    token: String,
}

/// The verdict on a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Answer the request.
    Pass,
    /// The token is in the address: redirect and set a cookie.
    Welcome,
    /// Refuse, with a message.
    Refuse(StatusCode, String),
}

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

impl Gate {
    pub(super) fn new(port: u16, token: String) -> Self {
        Gate { port, token }
    }

    /// Returns the address to open.
    pub(super) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/?token={}", self.port, self.token)
    }

    /// Returns the cookie that replaces the token. All ports of a host share cookies, so its name
    /// contains the port.
    pub(super) fn cookie(&self) -> String {
        format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie_name(), self.token)
    }

    fn cookie_name(&self) -> String {
        format!("about-memory-{}", self.port)
    }

    /// Checks a request before anything else.
    pub(super) fn judge(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Verdict {
        let refuse = |status, why: &str| Verdict::Refuse(status, why.to_owned());
        let Some(host) = self.own_host(uri, headers) else {
            let port = self.port;
            return Verdict::Refuse(
                StatusCode::FORBIDDEN,
                format!(
                    "This page is at 127.0.0.1:{port} or localhost:{port}, and by no other name."
                ),
            );
        };
        let own_origin = format!("http://{host}");
        let is_foreign = only(headers, &FETCH_SITE, |site| matches!(site, "same-origin" | "none"))
            == Some(false)
            || only(headers, &ORIGIN, |origin| origin == own_origin) == Some(false);
        if is_foreign {
            return refuse(
                StatusCode::FORBIDDEN,
                "Another site sent this request: open the address that about-memory has printed.",
            );
        }
        let is_reading = matches!(*method, Method::GET | Method::HEAD);
        if !is_reading && *method != Method::POST {
            return refuse(StatusCode::METHOD_NOT_ALLOWED, "Only GET and POST are known here.");
        }
        if is_reading && uri.path() == "/" && self.is_token_in(uri.query()) {
            return Verdict::Welcome;
        }
        if self.has_bearer(headers) {
            return Verdict::Pass;
        }
        if !self.has_cookie(headers) {
            return refuse(
                StatusCode::UNAUTHORIZED,
                "The token is missing: open the address that about-memory has printed.",
            );
        }
        if !is_reading && !headers.contains_key(ORIGIN) {
            // Every browser sends the origin of a POST.
            return refuse(StatusCode::FORBIDDEN, "A POST needs an Origin.");
        }
        Verdict::Pass
    }

    /// Returns the host of the request if it is this server. A foreign name that resolves to this
    /// address is refused (DNS rebinding).
    fn own_host<'r>(&self, uri: &'r Uri, headers: &'r HeaderMap) -> Option<&'r str> {
        let is_own = |host: &str| {
            host.rsplit_once(':').is_some_and(|(name, port)| {
                matches!(name, "127.0.0.1" | "localhost") && port == self.port.to_string()
            })
        };
        if uri.authority().is_some_and(|authority| !is_own(authority.as_str())) {
            return None;
        }
        let mut hosts = headers.get_all(HOST).iter();
        let host = hosts.next()?.to_str().ok()?;
        (hosts.next().is_none() && is_own(host)).then_some(host)
    }

    fn is_token_in(&self, query: Option<&str>) -> bool {
        let given =
            query.unwrap_or_default().split('&').find_map(|pair| pair.strip_prefix("token="));
        given.is_some_and(|given| self.is_token(given))
    }

    fn has_bearer(&self, headers: &HeaderMap) -> bool {
        only(headers, &AUTHORIZATION, |text| {
            text.strip_prefix("Bearer ").is_some_and(|given| self.is_token(given))
        }) == Some(true)
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let name = self.cookie_name();
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|cookies| cookies.split(';'));
        pairs.any(|pair| {
            let pair = pair.trim().split_once('=');
            pair.is_some_and(|(known, given)| known == name && self.is_token(given))
        })
    }

    /// Compares in constant time.
    fn is_token(&self, given: &str) -> bool {
        let pairs = self.token.bytes().zip(given.bytes());
        given.len() == self.token.len() && pairs.fold(0, |all, (a, b)| all | (a ^ b)) == 0
    }
}

/// Returns whether the only header of this name passes; `None` if there is no such header.
fn only(headers: &HeaderMap, name: &HeaderName, passes: impl Fn(&str) -> bool) -> Option<bool> {
    let mut all = headers.get_all(name).iter();
    let first = all.next()?;
    Some(all.next().is_none() && first.to_str().is_ok_and(passes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";
    const KNOWN: (&str, &str) = ("cookie", "other=1; about-memory-80=0123456789abcdef");
    const HERE: (&str, &str) = ("host", "127.0.0.1:80");

    type Headers<'a> = &'a [(&'a str, &'a str)];

    fn judge(method: &str, uri: &str, headers: Headers<'_>) -> String {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        match Gate::new(80, TOKEN.into()).judge(&method, &uri.parse().unwrap(), &map) {
            Verdict::Pass => "pass".into(),
            Verdict::Welcome => "welcome".into(),
            Verdict::Refuse(status, _) => status.as_u16().to_string(),
        }
    }

    #[test]
    fn only_the_token_opens() {
        let table: &[(&str, Headers<'_>, &str)] = &[
            ("/?token=0123456789abcdef", &[HERE], "welcome"),
            ("/?x=1&token=0123456789abcdef", &[HERE], "welcome"),
            ("/?token=0123456789abcdeg", &[HERE], "401"),
            ("/?token=0123456789abcde", &[HERE], "401"),
            // Two differences that cancel out.
            ("/?token=1023456789abcdef", &[HERE], "401"),
            ("/?token=", &[HERE], "401"),
            ("/moments?token=0123456789abcdef", &[HERE], "401"),
            ("/", &[HERE], "401"),
            ("/", &[HERE, KNOWN], "pass"),
            ("/", &[HERE, ("cookie", "about-memory-81=0123456789abcdef")], "401"),
            ("/", &[HERE, ("cookie", "about-memory-80=0123456789abcdee")], "401"),
            ("/", &[HERE, ("authorization", "Bearer 0123456789abcdef")], "pass"),
            ("/", &[HERE, ("authorization", "Basic 0123456789abcdef")], "401"),
        ];
        for (uri, headers, verdict) in table {
            assert_eq!(judge("GET", uri, headers), *verdict, "{uri} {headers:?}");
        }
    }

    #[test]
    fn only_the_servers_own_name_is_answered_to() {
        for (host, verdict) in [
            ("127.0.0.1:80", "pass"),
            ("localhost:80", "pass"),
            ("127.0.0.1:81", "403"),
            ("127.0.0.1", "403"),
            ("evil.example:80", "403"),
            ("127.0.0.1:80.evil.example", "403"),
            ("127.0.0.2:80", "403"),
            ("[::1]:80", "403"),
            ("", "403"),
        ] {
            assert_eq!(judge("GET", "/", &[("host", host), KNOWN]), verdict, "{host}");
        }
        assert_eq!(judge("GET", "/", &[KNOWN]), "403");
        assert_eq!(judge("GET", "/", &[HERE, HERE, KNOWN]), "403");
        assert_eq!(judge("GET", "http://evil.example:80/", &[HERE, KNOWN]), "403");
    }

    #[test]
    fn other_sites_get_nothing() {
        let table: &[(&str, Headers<'_>, &str)] = &[
            ("GET", &[("sec-fetch-site", "same-origin")], "pass"),
            ("GET", &[("sec-fetch-site", "none")], "pass"),
            ("GET", &[("sec-fetch-site", "cross-site")], "403"),
            // Another port of this machine is the same site.
            ("GET", &[("sec-fetch-site", "same-site")], "403"),
            ("GET", &[("sec-fetch-site", "none"), ("sec-fetch-site", "cross-site")], "403"),
            ("GET", &[("origin", "http://127.0.0.1:80")], "pass"),
            ("GET", &[("origin", "http://localhost:80")], "403"),
            ("GET", &[("origin", "null")], "403"),
            ("POST", &[("origin", "http://127.0.0.1:80")], "pass"),
            ("POST", &[("origin", "http://127.0.0.1:8080")], "403"),
            ("POST", &[("origin", "https://evil.example")], "403"),
            ("POST", &[], "403"),
            ("POST", &[("authorization", "Bearer 0123456789abcdef")], "pass"),
            ("PUT", &[], "405"),
            ("OPTIONS", &[("origin", "https://evil.example")], "403"),
        ];
        for (method, headers, verdict) in table {
            let all = [&[HERE, KNOWN], *headers].concat();
            assert_eq!(judge(method, "/", &all), *verdict, "{method} {headers:?}");
        }
        assert_eq!(judge("POST", "/", &[HERE, ("origin", "http://127.0.0.1:80")]), "401");
        assert_eq!(judge("POST", "/?token=0123456789abcdef", &[HERE]), "401");
    }
}
