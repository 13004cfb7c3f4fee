//! Tests of keys and the mouse.

use super::*;

fn report(words: u64) -> Vec<u8> {
    report_of(&[("explicit/index/words", words), ("explicit/index/pages", 4_000_000)])
}

fn report_of(amounts: &[(&str, u64)]) -> Vec<u8> {
    let reports: Vec<_> = amounts
        .iter()
        .map(|(path, amount)| {
            serde_json::json!({ "process": "p (pid 1)", "path": path, "kind": 1, "units": 0,
                                "amount": amount, "description": "d" })
        })
        .collect();
    let file =
        serde_json::json!({ "version": 1, "hasMozMallocUsableSize": true, "reports": reports });
    file.to_string().into_bytes()
}

fn state() -> State {
    let mut state = State::new("p (pid 1)".into());
    state.receive(report(8_000_000));
    state
}

fn press(state: &mut State, keys: &str) {
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            '<' => KeyCode::Left,
            other => KeyCode::Char(other),
        };
        state.key(code.into());
    }
}

fn text(state: &State) -> String {
    state.screen.lines.iter().map(|line| format!("{}\n", line.text.trim_end())).collect()
}

#[test]
fn a_node_can_be_folded_and_stays_so_when_a_report_comes() {
    let mut state = state();
    assert!(text(&state).contains("├───7.63 MB (66.67%) ── words"), "{}", text(&state));
    press(&mut state, "j ");
    assert!(text(&state).contains("++ index"), "{}", text(&state));
    assert!(!text(&state).contains("words"));
    state.receive(report(9_000_000));
    assert!(!text(&state).contains("words"), "{}", text(&state));
    assert_eq!(
        state.screen.lines[state.screen.cursor].path.as_deref(),
        Some("p (pid 1)/explicit/index")
    );
    press(&mut state, " ");
    assert!(text(&state).contains("8.58 MB (69.23%) ── words"), "{}", text(&state));
    press(&mut state, "jj<");
    assert_eq!(
        state.screen.lines[state.screen.cursor].path.as_deref(),
        Some("p (pid 1)/explicit/index")
    );
}

/// Returns the text of the line at the cursor.
fn current(state: &State) -> &str {
    state.line().map_or("", |line| line.text.trim())
}

#[test]
fn keys_move_over_the_nodes_and_not_beyond() {
    let mut state = state();
    let nodes: Vec<usize> = (0..state.screen.lines.len())
        .filter(|line| state.screen.lines[*line].path.is_some())
        .collect();
    let [first, second, .., last] = nodes[..] else { panic!("{}", text(&state)) };
    state.screen.height = 2;
    for (code, line) in [
        (KeyCode::End, last),
        (KeyCode::Down, last),
        (KeyCode::Home, first),
        (KeyCode::Up, first),
        (KeyCode::Char('j'), second),
        (KeyCode::Char('k'), first),
        (KeyCode::Char('G'), last),
        (KeyCode::Char('g'), first),
        (KeyCode::PageDown, second),
        (KeyCode::PageUp, first),
        // Opens nothing that is open: goes to the first child.
        (KeyCode::Right, second),
        (KeyCode::Char('x'), second),
    ] {
        state.key(code.into());
        assert_eq!(state.screen.cursor, line, "{code:?}: {}", text(&state));
    }
    press(&mut state, "<");
    assert!(current(&state).contains("++"), "{}", current(&state));
    press(&mut state, "l");
    assert!(current(&state).contains("--"), "{}", current(&state));
    press(&mut state, "<<");
    assert_eq!(state.screen.cursor, first);
}

#[test]
fn what_is_gathered_is_not_gathered_once_more_when_it_is_opened() {
    let paths: Vec<String> = (0..18).map(|number| format!("explicit/{number}")).collect();
    let report = |path: &str, amount: u64| {
        serde_json::json!({ "process": "p (pid 1)", "path": path, "kind": 1, "units": 0,
                            "amount": amount, "description": "d" })
    };
    let mut reports = vec![report("explicit/large", 100_000)];
    reports.extend(["explicit/x", "explicit/y"].map(|path| report(path, 1)));
    reports.extend(paths.iter().map(|path| report(path, 2)));
    let file = serde_json::json!({ "version": 1, "hasMozMallocUsableSize": true,
            "memreport": { "version": 1, "reporters": paths }, "reports": reports });
    let mut state = State::new("p (pid 1)".into());
    state.receive(file.to_string().into_bytes());
    let is_gathered = |line: &Line| line.text.contains("(4 tiny)");
    let place = state.screen.lines.iter().position(is_gathered);
    state.go(place.unwrap_or_else(|| panic!("{}", text(&state))));
    state.key(KeyCode::Enter.into());
    let text = text(&state);
    assert!(text.contains("── x\n") && text.contains("── 9\n"), "{text}");
    assert_eq!(text.matches(" tiny)").count(), 1, "{text}");
}

#[test]
fn a_filter_leaves_what_it_names_and_goes_again() {
    let mut state = state();
    press(&mut state, "/words\n");
    assert!(text(&state).contains("words") && !text(&state).contains("pages"), "{}", text(&state));
    press(&mut state, "\u{1b}");
    assert!(text(&state).contains("pages"));
}

#[test]
fn a_mark_shows_what_has_changed_since() {
    let mut state = state();
    press(&mut state, "m");
    state.receive(report(9_048_576));
    assert!(text(&state).contains("1.00 MB (100.0%) ── index/words"), "{}", text(&state));
    assert!(!text(&state).contains("pages"));
    press(&mut state, "m");
    assert!(text(&state).contains("pages"));
}

#[test]
fn verbose_pause_and_order_are_switches() {
    let mut state = state();
    press(&mut state, "v");
    assert!(text(&state).contains("8,000,000 B"));
    press(&mut state, "s");
    let sorted = text(&state);
    assert!(sorted.find("pages") < sorted.find("words"), "{sorted}");
    press(&mut state, "p");
    state.receive(report(1));
    assert!(text(&state).contains("8,000,000 B"), "paused");
    assert_eq!(state.key(KeyCode::Char('q').into()), Some(UserAction::Quit));
}

#[test]
fn the_mouse_chooses_and_turns_a_line() {
    let mut state = state();
    state.screen.height = 10;
    let mouse = |kind, row| MouseEvent { kind, column: 0, row, modifiers: KeyModifiers::NONE };
    let click = |row| mouse(MouseEventKind::Down(MouseButton::Left), row);
    // The process, a warning, the tree, `index`.
    state.mouse(click(4));
    assert_eq!(state.screen.cursor, 3);
    assert!(text(&state).contains("words"), "{}", text(&state));
    state.mouse(click(4));
    assert!(!text(&state).contains("words"), "{}", text(&state));
    state.mouse(click(40));
    assert_eq!(state.screen.cursor, 3);
    state.mouse(mouse(MouseEventKind::ScrollUp, 0));
    assert_eq!(state.screen.cursor, 2);
}

#[test]
fn a_sheet_takes_the_keys_until_it_is_closed() {
    let mut state = state();
    state.screen.height = 10;
    assert_eq!(state.key(KeyCode::Char('d').into()), Some(UserAction::Places));
    state.show_sheet("unreported", "a\nb\nc");
    press(&mut state, "jj");
    assert_eq!(state.screen.sheet.as_ref().map(|sheet| sheet.top), Some(2));
    assert_eq!(state.key(KeyCode::Char('w').into()), Some(UserAction::Save));
    assert_eq!(state.key(KeyCode::Char('q').into()), None);
    assert!(state.screen.sheet.is_none());
    assert_eq!(state.key(KeyCode::Char('q').into()), Some(UserAction::Quit));
}

#[test]
fn courses_grow_with_each_report() {
    let mut state = state();
    state.receive(report(9_000_000));
    let course = &state.screen.courses["p (pid 1)/explicit/index/words"];
    assert_eq!(course, &[8_000_000.0, 9_000_000.0]);
}

#[test]
fn a_small_node_has_a_course_before_it_grows() {
    let mut state = State::new("p (pid 1)".into());
    let amounts = [
        ("explicit/index/pages", 4_000_000),
        ("explicit/index/words", 10),
        ("explicit/index/links", 20),
    ];
    state.receive(report_of(&amounts));
    assert!(!text(&state).contains("words"), "{}", text(&state));
    let course = state.screen.courses.get("p (pid 1)/explicit/index/words");
    assert_eq!(course.map(Vec::as_slice), Some(&[10.0][..]), "{:?}", state.screen.courses);
}
