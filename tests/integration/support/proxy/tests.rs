use std::io::ErrorKind;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::yield_now;
use tokio::time::Instant;

use super::pattern::{Found, Pattern};
use super::*;

/// A proxy, and the server behind it, which is the test itself.
struct Stage {
    server: TcpListener,
    proxy: Proxy,
}

impl Stage {
    async fn new() -> Self {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Proxy::start(server.local_addr().unwrap());
        Self { server, proxy }
    }

    /// Both ends of a new connection.
    async fn connect(&self) -> (End, End) {
        let client = TcpStream::connect(self.proxy.address()).await.unwrap();
        let (server, _) = self.server.accept().await.unwrap();
        (End(client), End(server))
    }
}

/// One end of a connection.
struct End(TcpStream);

impl End {
    async fn says(&mut self, words: &[u8]) {
        self.0.write_all(words).await.unwrap();
    }

    async fn hears(&mut self, words: &[u8]) {
        let mut heard = vec![0; words.len()];
        self.0.read_exact(&mut heard).await.unwrap();
        assert_eq!(heard, words);
    }

    /// All that comes until the end.
    async fn hears_at_last(&mut self, words: &[u8]) {
        let mut heard = Vec::new();
        match self.0.read_to_end(&mut heard).await {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
        }
        assert_eq!(heard, words);
    }
}

#[tokio::test]
async fn everything_passes_at_first() {
    let stage = Stage::new().await;
    let (mut client, mut server) = stage.connect().await;
    client.says(b"hello").await;
    server.hears(b"hello").await;
    server.says(b"hi").await;
    client.hears(b"hi").await;
    client.0.shutdown().await.unwrap();
    server.hears_at_last(b"").await;
    server.says(b"bye").await;
    drop(server);
    client.hears_at_last(b"bye").await;
    let traffic = stage.proxy.traffic();
    assert_eq!((traffic.to_server, traffic.to_client), (5, 5));
    assert_eq!(traffic.connections, 1);
}

#[tokio::test]
async fn much_passes_unchanged() {
    let stage = Stage::new().await;
    let (mut client, mut server) = stage.connect().await;
    let much: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let sent = much.clone();
    let sending = tokio::spawn(async move {
        client.says(&sent).await;
    });
    server.hears_at_last(&much).await;
    sending.await.unwrap();
}

#[tokio::test]
async fn refused_connections_are_refused_and_open_ones_stay() {
    let stage = Stage::new().await;
    let (mut client, mut server) = stage.connect().await;
    for _ in 0..3 {
        stage.proxy.refuse().await;
        stage.proxy.refuse().await;
        let refused = TcpStream::connect(stage.proxy.address()).await;
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        client.says(b"still here").await;
        server.hears(b"still here").await;
        stage.proxy.accept();
        let (mut late, mut server) = stage.connect().await;
        late.says(b"at last").await;
        server.hears(b"at last").await;
    }
}

#[tokio::test]
async fn a_cut_ends_every_connection_and_takes_new_ones() {
    let stage = Stage::new().await;
    let mut ends = Vec::new();
    for _ in 0..3 {
        let (mut client, mut server) = stage.connect().await;
        client.says(b"a").await;
        server.hears(b"a").await;
        ends.extend([client, server]);
    }
    assert_eq!(stage.proxy.traffic().open, 3);
    stage.proxy.cut().await;
    assert_eq!(stage.proxy.traffic().open, 0);
    for mut end in ends {
        end.hears_at_last(b"").await;
    }
    let (mut client, mut server) = stage.connect().await;
    client.says(b"b").await;
    server.hears(b"b").await;
}

#[tokio::test(start_paused = true)]
async fn a_delay_is_one_way_and_keeps_the_order() {
    let stage = Stage::new().await;
    let (mut client, mut server) = stage.connect().await;
    let hour = Duration::from_secs(3600);
    stage.proxy.delay(Direction::ToClient, hour);
    let begun = Instant::now();
    client.says(b"now").await;
    server.hears(b"now").await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
    server.says(b"one").await;
    server.says(b"two").await;
    client.hears(b"onetwo").await;
    assert!(begun.elapsed() >= hour);
    stage.proxy.pass();
    let begun = Instant::now();
    server.says(b"three").await;
    client.hears(b"three").await;
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn a_stall_swallows_one_way_and_costs_the_connection() {
    let stage = Stage::new().await;
    let (mut client, mut server) = stage.connect().await;
    let (mut quiet, mut other) = stage.connect().await;
    stage.proxy.stall(Direction::ToServer);
    // More than all buffers on the way can hold.
    client.says(&vec![b'x'; 50_000_000]).await;
    server.says(b"the other way").await;
    client.hears(b"the other way").await;
    client.0.shutdown().await.unwrap();
    server.says(b"still open").await;
    client.hears(b"still open").await;
    assert_eq!(stage.proxy.traffic().to_server, 0);
    stage.proxy.pass();
    server.hears_at_last(b"").await;
    client.hears_at_last(b"").await;
    quiet.says(b"nothing lost").await;
    other.hears(b"nothing lost").await;
}

#[tokio::test]
async fn answers_stall_as_well() {
    let stage = Stage::new().await;
    let (mut client, mut server) = stage.connect().await;
    stage.proxy.stall(Direction::ToClient);
    server.says(b"an answer").await;
    client.says(b"the other way").await;
    server.hears(b"the other way").await;
    server.0.shutdown().await.unwrap();
    client.says(b"still open").await;
    server.hears(b"still open").await;
    stage.proxy.cut().await;
    client.hears_at_last(b"").await;
    assert_eq!(stage.proxy.traffic().to_client, 0);
}

#[tokio::test]
async fn a_cut_after_so_many_bytes_is_exact() {
    for (bytes, first, second) in [
        (0, "", ""),
        (3, "abc", ""),
        (4, "abcd", ""),
        (6, "abcd", "ef"),
    ] {
        let stage = Stage::new().await;
        let (mut client, mut server) = stage.connect().await;
        client.says(b"before").await;
        server.hears(b"before").await;
        let fired = stage.proxy.cut_after(Direction::ToServer, bytes);
        client.says(b"abcd").await;
        server.hears(first.as_bytes()).await;
        if bytes > 4 {
            client.says(b"efgh").await;
        }
        server.hears_at_last(second.as_bytes()).await;
        fired.wait().await;
        client.hears_at_last(b"").await;
        assert_eq!(stage.proxy.traffic().to_server, 6 + bytes);
        let (mut client, mut server) = stage.connect().await;
        client.says(b"once only").await;
        server.hears(b"once only").await;
    }
}

#[tokio::test]
async fn a_cut_after_bytes_of_answers_spares_the_requests() {
    let stage = Stage::new().await;
    let (mut client, mut server) = stage.connect().await;
    let fired = stage.proxy.cut_after(Direction::ToClient, 2);
    client.says(b"a long request").await;
    server.hears(b"a long request").await;
    server.says(b"answer").await;
    client.hears_at_last(b"an").await;
    fired.wait().await;
    server.hears_at_last(b"").await;
}

#[tokio::test]
async fn a_commit_reaches_the_server_and_its_answer_nobody() {
    let stage = Stage::new().await;
    let (mut client, mut server) = stage.connect().await;
    let mut fired = stage.proxy.cut_before_answer(POSTGRES_COMMIT);
    client.says(b"insert into commit_log\0com").await;
    server.hears(b"insert into commit_log\0com").await;
    server.says(b"inserted").await;
    client.hears(b"inserted").await;
    client.says(b"Mi").await;
    server.hears(b"Mi").await;
    client.says(b"t\0and more").await;
    server.hears(b"t\0and more").await;
    assert!(!fired.has_fired());
    server.says(b"done").await;
    client.hears_at_last(b"").await;
    fired.wait().await;
    server.hears_at_last(b"").await;
    assert_eq!(stage.proxy.traffic().open, 0);

    let (mut client, mut server) = stage.connect().await;
    client.says(b"COMMIT\0").await;
    server.hears(b"COMMIT\0").await;
    server.says(b"once only").await;
    client.hears(b"once only").await;
}

#[tokio::test]
async fn a_trigger_cuts_the_connection_that_sets_it_off_and_no_other() {
    let stage = Stage::new().await;
    let (mut other, mut its_server) = stage.connect().await;
    let (mut client, mut server) = stage.connect().await;
    let fired = stage.proxy.cut_before_answer(MYSQL_COMMIT);
    // Half the words on each are none of them on any.
    other.says(&MYSQL_COMMIT[..6]).await;
    its_server.hears(&MYSQL_COMMIT[..6]).await;
    client.says(MYSQL_COMMIT).await;
    server.hears(MYSQL_COMMIT).await;
    its_server.says(b"yes?").await;
    other.hears(b"yes?").await;
    server.says(b"ok").await;
    client.hears_at_last(b"").await;
    fired.wait().await;
    other.says(b"still here").await;
    its_server.hears(b"still here").await;
}

#[tokio::test]
async fn an_answer_to_something_earlier_is_not_the_one_to_a_commit() {
    let stage = Stage::new().await;
    let (mut client, mut server) = stage.connect().await;
    let fired = stage.proxy.cut_at_answer(POSTGRES_COMMIT, POSTGRES_COMMIT);
    client.says(b"insert\0commit\0").await;
    server.hears(b"insert\0commit\0").await;
    server.says(b"inserted\0com").await;
    client.says(b"hurry up").await;
    server.hears(b"hurry up").await;
    server.says(b"mit\0").await;
    client.hears_at_last(b"").await;
    fired.wait().await;
    server.hears_at_last(b"").await;
}

#[tokio::test]
async fn a_request_that_is_cut_off_never_reaches_the_server() {
    let stage = Stage::new().await;
    for (pieces, heard) in [
        (&["insert;commit\0"][..], "insert;"),
        (&["insert;com", "mit\0"][..], "insert;com"),
    ] {
        let (mut client, mut server) = stage.connect().await;
        let fired = stage.proxy.cut_before_request(POSTGRES_COMMIT);
        let (last, first) = pieces.split_last().unwrap();
        let mut heard = heard.as_bytes();
        for piece in first {
            client.says(piece.as_bytes()).await;
            server.hears(piece.as_bytes()).await;
            heard = &heard[piece.len()..];
        }
        client.says(last.as_bytes()).await;
        server.hears_at_last(heard).await;
        client.hears_at_last(b"").await;
        fired.wait().await;
    }
}

#[tokio::test]
async fn what_was_sent_before_a_trigger_is_set_does_not_set_it_off() {
    let stage = Stage::new().await;
    let (mut client, mut server) = stage.connect().await;
    let _replaced = stage.proxy.cut_before_request(b"commit");
    client.says(b"com").await;
    server.hears(b"com").await;
    let fired = stage.proxy.cut_before_request(b"commit");
    client.says(b"mit").await;
    server.hears(b"mit").await;
    client.says(b"commit").await;
    server.hears_at_last(b"").await;
    fired.wait().await;
}

#[tokio::test]
async fn a_server_that_is_away_ends_its_connections() {
    let Stage { server, proxy } = Stage::new().await;
    drop(server);
    let client = TcpStream::connect(proxy.address()).await.unwrap();
    End(client).hears_at_last(b"").await;
}

#[tokio::test]
async fn dropped_it_is_gone() {
    let stage = Stage::new().await;
    let (mut client, mut server) = stage.connect().await;
    let address = stage.proxy.address();
    let rules = Arc::downgrade(&stage.proxy.rules);
    drop(stage.proxy);
    client.hears_at_last(b"").await;
    server.hears_at_last(b"").await;
    while rules.strong_count() > 0 {
        yield_now().await;
    }
    let refused = TcpStream::connect(address).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn words_are_found_wherever_the_stream_is_cut() {
    let stream = b"xxCOcOmMiTyyCOMMIT";
    for one in 0..=stream.len() {
        for two in one..=stream.len() {
            let mut pattern = Pattern::new(b"comMIT");
            let pieces = [&stream[..one], &stream[one..two], &stream[two..]];
            let mut begin = 0;
            let mut found = Vec::new();
            for piece in pieces {
                if let Some(Found { begin }) = pattern.find(piece) {
                    found.push(begin);
                }
                if found.len() == 1 {
                    break;
                }
                begin += piece.len();
            }
            // The first of the words ends at 10; they begin at 4, or with the piece that ends them.
            let [first] = found[..] else {
                panic!("found {found:?} at {one} and {two}");
            };
            assert_eq!(begin + first, begin.max(4), "{one}, {two}");
        }
    }
    assert_eq!(Pattern::new(b"comMIT").find(b"commi"), None);
}
