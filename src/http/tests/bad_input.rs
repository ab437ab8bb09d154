use actix_web::test::TestRequest;

use crate::http::fixture::{Answer, Recorder, send};

/// Sends a request that must be refused before it reaches the node.
async fn refused(request: TestRequest) -> Answer {
    let recorder = Recorder::new();
    let answer = send(&recorder, request).await;
    assert!(recorder.submissions.lock().is_empty() && recorder.asked.lock().is_empty());
    answer
}

fn prepare() -> TestRequest {
    let request = TestRequest::post()
        .uri("/account/a-1/prepare")
        .set_payload("{}");
    request.insert_header(("Content-Type", "application/json"))
}

#[actix_web::test]
async fn an_unknown_path_is_a_404_with_a_code() {
    for uri in [
        "/",
        "/nothing",
        "/account",
        "/account/a/b/c/d",
        "/metrics",
        "/wow",
        "/account/a-1",
    ] {
        let answer = refused(TestRequest::get().uri(uri)).await;
        let expected = if uri == "/account/a-1" {
            (405, "wow.http.method-not-allowed")
        } else {
            (404, "wow.http.not-found")
        };
        assert_eq!((answer.status, &*answer.code()), expected, "{uri}");
    }
}

#[actix_web::test]
async fn a_path_that_cannot_be_decoded_is_a_400_wherever_it_stands() {
    let deep = format!("/x{}/%", "/a".repeat(40));
    for uri in [
        "/%zz",
        "/account/%zz/prepare",
        "/account/a-1/pre%pare",
        "/account/a/b/c/d/%4",
        "/metrics/%FF",
        "/account/a-1/prepare/%c3",
        &deep,
    ] {
        for request in [TestRequest::get(), TestRequest::post()] {
            let answer = refused(request.uri(uri)).await;
            let found = (answer.status, &*answer.code());
            assert_eq!(found, (400, "wow.http.path-invalid"), "{uri}");
        }
    }
}

/// A path has one form: what is behind the last slash is a segment, and no route ends in an empty
/// one. An empty id is an id that is missing, as an empty header is.
#[actix_web::test]
async fn a_trailing_slash_leads_nowhere() {
    for uri in [
        "/account/create_account/",
        "/account/a-1/prepare/",
        "/health/live/",
        "/wow/command/send/",
    ] {
        let answer = refused(TestRequest::post().uri(uri)).await;
        let found = (answer.status, &*answer.code());
        assert_eq!(found, (404, "wow.http.not-found"), "{uri}");
    }
    let answer = refused(TestRequest::delete().uri("/account/")).await;
    let found = (answer.status, &*answer.code());
    assert_eq!(found, (400, "wow.command.identity-invalid"));
}

#[actix_web::test]
async fn a_wrong_method_is_a_405_that_says_which_are_right() {
    for (request, uri, allow) in [
        (
            TestRequest::get(),
            "/account/create_account",
            "POST, DELETE",
        ),
        (TestRequest::delete(), "/account/a/entry", "POST, PUT"),
        (TestRequest::post(), "/account/a/recover", "PUT"),
        (TestRequest::post(), "/account/a/state", "GET, HEAD"),
        (TestRequest::patch(), "/wow/metadata", "GET, HEAD"),
        (
            TestRequest::with_uri("/").method(actix_web::http::Method::OPTIONS),
            "/health/live",
            { "GET, HEAD" },
        ),
    ] {
        let answer = refused(request.uri(uri)).await;
        assert_eq!(
            (answer.status, answer.header("allow")),
            (405, allow),
            "{uri}"
        );
        assert_eq!(answer.code(), "wow.http.method-not-allowed");
    }
}

#[actix_web::test]
async fn a_header_that_can_not_be_used_is_a_400_that_names_it() {
    for (name, value) in [
        ("Command-Aggregate-Version", "-1"),
        ("Command-Aggregate-Version", "1e2"),
        ("Command-Wait-Stage", "DONE"),
        ("Command-Wait-Timeout", "-5"),
        ("Command-Wait-Timeout", "NaN"),
        ("Command-Wait-Tail-Stage", "SNAPSHOT"),
        ("Command-Local-First", "maybe"),
    ] {
        let answer = refused(prepare().insert_header((name, value))).await;
        assert_eq!(answer.status, 400, "{name}: {value}");
        assert_eq!(answer.code(), "wow.command.parameter-invalid");
        assert_eq!(answer.json()["bindingErrors"][0]["name"], name);
        assert!(answer.json()["errorMsg"].as_str().unwrap().contains(name));
    }
}

#[actix_web::test]
async fn r3_a_doubled_header_is_a_400_on_commands_facade_and_reads() {
    let facade = TestRequest::post()
        .uri("/wow/command/send")
        .insert_header(("Content-Type", "application/json"))
        .insert_header(("Command-Type", "prepare"))
        .set_payload("{}");
    for request in [
        prepare(),
        facade,
        TestRequest::get().uri("/account/a/state"),
    ] {
        let request = request
            .append_header(("Command-Tenant-Id", "t"))
            .append_header(("command-tenant-id", "t"));
        let answer = refused(request).await;
        assert_eq!(
            (answer.status, &*answer.code()),
            (400, "wow.command.parameter-invalid")
        );
        assert_eq!(
            answer.json()["bindingErrors"][0]["name"],
            "Command-Tenant-Id"
        );
    }
    let picker = TestRequest::patch()
        .uri("/sales-order/7/items/1")
        .append_header(("X-Picker", "a"))
        .append_header(("X-Picker", "b"));
    assert_eq!(
        refused(picker).await.code(),
        "wow.command.parameter-invalid"
    );
}

#[actix_web::test]
async fn r3_an_empty_identity_fact_is_a_400_wherever_it_comes_from() {
    for name in [
        "Command-Tenant-Id",
        "Command-Owner-Id",
        "Command-Space-Id",
        "Wow-Space-Id",
    ] {
        let answer = refused(prepare().insert_header((name, ""))).await;
        assert_eq!(
            (answer.status, &*answer.code()),
            (400, "wow.command.identity-invalid"),
            "{name}"
        );
    }
    for uri in [
        "/account//prepare",
        "/owner//sales-order/1/rename",
        "/account//state",
    ] {
        let request = if uri.ends_with("state") {
            TestRequest::get()
        } else {
            TestRequest::post()
        };
        let answer = refused(request.uri(uri)).await;
        assert_eq!(
            (answer.status, &*answer.code()),
            (400, "wow.command.identity-invalid"),
            "{uri}"
        );
    }
}

#[actix_web::test]
async fn a_body_that_is_not_json_is_a_415() {
    let bare = || {
        TestRequest::post()
            .uri("/account/a-1/prepare")
            .set_payload("{}")
    };
    for request in [
        bare(),
        bare().insert_header(("Content-Type", "application/x-www-form-urlencoded")),
        bare().insert_header(("Content-Type", "text/plain")),
        bare().insert_header(("Content-Type", "")),
        prepare().insert_header(("Content-Type", "application/json; charset=utf-16")),
        prepare().insert_header(("Content-Encoding", "gzip")),
    ] {
        let answer = refused(request).await;
        assert_eq!(
            (answer.status, &*answer.code()),
            (415, "wow.http.unsupported-media-type")
        );
    }
}

#[actix_web::test]
async fn r5_a_body_that_is_too_large_is_a_413() {
    let answer = refused(prepare().set_payload(vec![b' '; 1001])).await;
    assert_eq!(
        (answer.status, &*answer.code()),
        (413, "wow.command.body-too-large")
    );
    let recorder = Recorder::new();
    assert_eq!(
        send(&recorder, prepare().set_payload(vec![b' '; 1000]))
            .await
            .status,
        200
    );
}

#[actix_web::test]
async fn what_only_admission_can_judge_is_handed_to_it_as_it_came() {
    // Truncated, deep, doubled, out of range, no UTF-8: the body is admission's to read.
    let deep = "[".repeat(900);
    for body in [
        &b"{\"a\":"[..],
        deep.as_bytes(),
        b"{\"a\":1,\"a\":2}",
        b"{\"a\":1e999}",
        b"NaN",
        b"\xff\xfe",
    ] {
        let recorder = Recorder::new();
        let answer = send(&recorder, prepare().set_payload(body.to_vec())).await;
        assert_eq!(answer.status, 200);
        match recorder.submission().body {
            wow_kernel::submission::Body::Json(bytes) => assert_eq!(bytes, body),
            other => panic!("{other:?}"),
        }
    }
}

#[actix_web::test]
async fn a_path_that_is_not_utf_8_is_a_400() {
    let answer = refused(TestRequest::get().uri("/account/%FF%FE/state")).await;
    assert_eq!(
        (answer.status, &*answer.code()),
        (400, "wow.http.path-invalid")
    );
}

#[actix_web::test]
async fn a_url_or_headers_beyond_the_bounds_are_refused() {
    let long = format!("/account/{}/state", "a".repeat(500));
    let answer = refused(TestRequest::get().uri(&long)).await;
    assert_eq!(
        (answer.status, &*answer.code()),
        (414, "wow.http.uri-too-long")
    );
    let answer = refused(prepare().insert_header(("X-Long", "a".repeat(60_000)))).await;
    assert_eq!(
        (answer.status, &*answer.code()),
        (431, "wow.http.headers-too-large")
    );
}

#[actix_web::test]
async fn r4_a_token_that_proves_nothing_is_a_401_before_the_body_is_read() {
    let request = prepare()
        .insert_header(("Authorization", "Bearer forged"))
        .set_payload(vec![b' '; 5000]);
    let answer = refused(request).await;
    assert_eq!(
        (answer.status, &*answer.code()),
        (401, "wow.access.unauthenticated")
    );
    assert_eq!(answer.header("www-authenticate"), "Bearer");
    assert!(!answer.body.contains("forged"));
    let read = TestRequest::get().uri("/account/a/state");
    let answer = refused(read.insert_header(("Authorization", "Bearer forged"))).await;
    assert_eq!(answer.status, 401);
}

#[actix_web::test]
async fn the_facade_needs_a_command_type() {
    for value in [None, Some("")] {
        let mut request = TestRequest::post()
            .uri("/wow/command/send")
            .insert_header(("Content-Type", "application/json"))
            .set_payload("{}");
        if let Some(value) = value {
            request = request.insert_header(("Command-Type", value));
        }
        let answer = refused(request).await;
        assert_eq!(
            (answer.status, &*answer.code()),
            (400, "wow.command.parameter-invalid")
        );
        assert_eq!(answer.json()["bindingErrors"][0]["name"], "Command-Type");
    }
}
