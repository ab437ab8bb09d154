#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)]
use std::time::Instant;
use sea_orm::*;
use sea_orm::sqlx::sqlite::{SqliteJournalMode, SqliteSynchronous};
use uuid::Uuid;
struct Row { p: i64, pos: i64, id: String, v: i64, req: String, cmd: String, ev: String }
fn values(rows: &[&Row]) -> Vec<Value> {
    let mut o = Vec::with_capacity(rows.len()*17);
    for r in rows { o.extend([Value::from(r.p), Value::from(r.pos), Value::from("(0)"), Value::from("account"), Value::from(r.id.as_str()), Value::from(r.v), Value::from(r.req.as_str()), Value::from(r.cmd.as_str()), Value::from("entry"), Value::from("ann"), Value::from(""), Value::from(""), Value::from("node-1"), Value::from(r.ev.as_str()), Value::String(None), Value::from("{\"traceparent\":\"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\"}"), Value::from(1i64)]); }
    o
}
fn insert(n: usize) -> String { let row = format!("({})", vec!["?";17].join(",")); format!("insert into commit_log values {}", vec![row; n].join(",")) }
async fn run(form: &str, batch: usize, total: usize) {
    let d = tempfile::tempdir_in(".").unwrap();
    let path = d.path().join("x.db");
    let mut o = ConnectOptions::new("sqlite:");
    o.max_connections(1).test_before_acquire(false).sqlx_logging(false).map_sqlx_sqlite_opts(move |o| o.filename(&path).create_if_missing(true).journal_mode(SqliteJournalMode::Wal).synchronous(SqliteSynchronous::Off).pragma("wal_autocheckpoint","4000").pragma("cache_size","-65536"));
    let c = Database::connect(o).await.unwrap();
    wow_migrations::migrate(&c).await.unwrap();
    let ids: Vec<String> = (0..1024).map(|_| Uuid::now_v7().to_string()).collect();
    let mut vers = vec![0i64; 1024]; let mut heads = [0i64; 64]; let mut k = 0;
    let json_sql = format!("insert into commit_log select {} from json_each($1)", (0..17).map(|i| format!("value ->> {i}")).collect::<Vec<_>>().join(","));
    let chunks: &[usize] = match form { "chunks64" => &[64,16,4,1], "chunks256" => &[256,64,16,4,1], "pow2" => &[256,128,64,32,16,8,4,2,1], "chunks16" => &[16,4,1], "one" => &[1], _ => &[] };
    let texts: Vec<String> = chunks.iter().map(|n| insert(*n)).collect();
    let exact = insert(batch);
    let start = Instant::now(); let cpu0 = cpu();
    let mut done = 0;
    while done < total {
        let rows: Vec<Row> = (0..batch).map(|_| { k = (k+37)%1024; vers[k]+=1; heads[k%64]+=1; Row{p:(k%64) as i64,pos:heads[k%64],id:ids[k].clone(),v:vers[k],req:Uuid::now_v7().to_string(),cmd:Uuid::now_v7().to_string(),ev:r#"[{"name":"amount_entered","revision":1,"body":{"sourceId":"0190163e-9d6a-7e3c-8d2a-5b1f6c1d2e3f","amount":100,"text":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}}]"#.to_owned()} }).collect();
        let rows: Vec<&Row> = rows.iter().collect();
        let t = c.begin_with_options(TransactionOptions{sqlite_transaction_mode:Some(SqliteTransactionMode::Immediate),..Default::default()}).await.unwrap();
        match form {
            "exact" => { t.execute_raw(Statement::from_sql_and_values(DbBackend::Sqlite, exact.as_str(), values(&rows))).await.unwrap(); }
            "json" => {
                let j: Vec<_> = rows.iter().map(|r| ((r.p,r.pos,"(0)","account",&r.id,r.v,&r.req,&r.cmd),("entry","ann","","","node-1",&r.ev,None::<&str>,"{\"traceparent\":\"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\"}",1))).collect();
                let mut s = String::from("[");
                for (i,(a,b)) in j.iter().enumerate() { if i>0 {s.push(',')} let a=serde_json::to_string(a).unwrap(); let b=serde_json::to_string(b).unwrap(); s.push_str(&a[..a.len()-1]); s.push(','); s.push_str(&b[1..]); }
                s.push(']');
                t.execute_raw(Statement::from_sql_and_values(DbBackend::Sqlite, json_sql.as_str(), [Value::from(s)])).await.unwrap();
            }
            _ => { let mut rest = &rows[..]; for (n,text) in chunks.iter().zip(&texts) { while let Some((a,b)) = rest.split_at_checked(*n) { t.execute_raw(Statement::from_sql_and_values(DbBackend::Sqlite, text.as_str(), values(a))).await.unwrap(); rest = b; } } }
        }
        t.commit().await.unwrap();
        done += batch;
    }
    println!("{form:>10} batch {batch:>4}: {:>7.0}/s  cpu {:.1} us/row", done as f64 / start.elapsed().as_secs_f64(), (cpu()-cpu0)*1e6/done as f64);
}
fn cpu() -> f64 { let s = std::fs::read_to_string("/proc/self/stat").unwrap(); let f: Vec<&str> = s.rsplit(')').next().unwrap().split_whitespace().collect(); (f[11].parse::<f64>().unwrap() + f[12].parse::<f64>().unwrap()) / 100.0 }
fn main() {
    let rt = tokio::runtime::Runtime::new().unwrap();
    for _ in 0..2 { for batch in [7, 48, 63, 500] { for form in ["exact","chunks64","chunks256","pow2","chunks16","json","one"] { rt.block_on(run(form, batch, 40000)); } } }
}
