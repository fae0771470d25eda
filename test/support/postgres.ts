/** A real PostgreSQL for one test: in a temporary folder, as an unprivileged user, on loopback with TLS and on a socket. */
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type CertificateOptions, makeCertificate, type TestCertificate } from "./certificate.ts";
import { freePorts } from "./free-ports.ts";

/** Debian keeps the server's programs beside each other by version; the newest one. */
const BIN = globSync("/usr/lib/postgresql/*/bin/initdb").sort().at(-1)?.slice(0, -"/initdb".length) ?? null;

/** Why there can be none here; null: there can. */
export const noPostgres: string | null = BIN === null ? "no PostgreSQL server is installed" : null;

const ADMIN_PASSWORD = "admin-password-of-the-test";

export interface TestPostgres extends AsyncDisposable {
  readonly port: number;
  readonly authority: TestCertificate;
  /** Where `ca` can point to. */
  readonly caFile: string;
  readonly folder: string;
  /** With password and TLS, by name. */
  dsn(role?: string, password?: string, database?: string): string;
  /** What psql prints of it, as the superuser: rows by line, columns by `|`. */
  sql(text: string, database?: string): string;
  /** The server presents another certificate from the next connection on. */
  present(options: CertificateOptions): Promise<void>;
  /** Of the server's processes, of those that run and of those that have ended. */
  cpuSeconds(): number;
  /** Another server that follows this one by streaming replication, on a port of its own; commits wait for it from then on. */
  standby(): Promise<TestStandby>;
  /** At once, as by a loss of power. */
  kill(): Promise<void>;
  start(): Promise<void>;
}

export interface TestStandby extends AsyncDisposable {
  readonly port: number;
  /** Takes writes from then on. */
  promote(): void;
  sql(text: string, database?: string): string;
}

/** Runs until it is disposed of; nothing of it stays. */
export async function startPostgres({
  isDurable = false,
}: {
  /** Commits wait for the medium. Tests that end processes, not machines, need it only for times that they measure. */
  readonly isDurable?: boolean;
} = {}): Promise<TestPostgres> {
  if (BIN === null) throw new Error(noPostgres ?? "");
  const folder = mkdtempSync(join(tmpdir(), "weir-postgres-"));
  const data = join(folder, "data");
  const owner = unprivileged();
  if (owner !== null) chownSync(folder, owner.uid, owner.gid);
  const keep = (name: string, text: string): string => {
    const path = join(folder, name);
    writeFileSync(path, text, { mode: 0o600 });
    if (owner !== null) chownSync(path, owner.uid, owner.gid);
    return path;
  };
  const authority = makeCertificate({ names: ["authority of the test"], ca: true });
  const caFile = keep("ca.pem", authority.cert);
  const certify = (options: CertificateOptions): void => {
    const { cert, key } = makeCertificate({ issuer: authority, ...options });
    keep("server.pem", cert);
    keep("server.key", key);
  };
  certify({ names: ["localhost", "127.0.0.1"] });
  const as = { ...owner, stdio: ["ignore", "ignore", "pipe"] as ["ignore", "ignore", "pipe"], cwd: folder };
  const password = keep("password", `${ADMIN_PASSWORD}\n`);
  const initial = ["-D", data, "-U", "postgres", "-A", "scram-sha-256", "-E", "UTF8", "--no-locale", "-N"];
  execFileSync(join(BIN, "initdb"), [...initial, `--pwfile=${password}`], as);
  keep(
    "data/pg_hba.conf",
    "hostssl all all 127.0.0.1/32 scram-sha-256\nlocal all,replication postgres trust\n",
  );
  const [port = 0] = await freePorts(1);
  const settings = {
    listen_addresses: "127.0.0.1",
    port: String(port),
    unix_socket_directories: folder,
    ssl: "on",
    ssl_cert_file: join(folder, "server.pem"),
    ssl_key_file: join(folder, "server.key"),
    max_connections: "100",
    fsync: isDurable ? "on" : "off",
  };
  const flagsFor = (at: number): readonly string[] =>
    Object.entries({ ...settings, port: String(at) }).flatMap(([key, value]) => ["-c", `${key}=${value}`]);
  const flags = flagsFor(port);
  let server: ChildProcess | null = null;
  const sqlAt =
    (at: number) =>
    (text: string, database = "postgres"): string => {
      const args = ["-h", folder, "-p", String(at), "-U", "postgres", "-d", database, "-Atqc", text];
      return execFileSync(join(BIN, "psql"), args, {
        encoding: "utf8",
        stdio: ["ignore", "pipe", "pipe"],
      }).trimEnd();
    };
  const sql = sqlAt(port);
  const start = async (): Promise<void> => {
    server = spawn(join(BIN, "postgres"), ["-D", data, ...flags], as);
    await begun(server, sql);
  };
  const end = async (signal: "SIGQUIT" | "SIGINT"): Promise<void> => {
    const running = server;
    server = null;
    await ended(running, signal);
  };
  const standby = async (): Promise<TestStandby> => {
    const [own = 0] = await freePorts(1);
    const copy = join(folder, `standby-${own}`);
    const from = ["-h", folder, "-p", String(port), "-U", "postgres"];
    execFileSync(join(BIN, "pg_basebackup"), [...from, "-D", copy, "-R", "-X", "stream", "-c", "fast"], as);
    const follower = spawn(join(BIN, "postgres"), ["-D", copy, ...flagsFor(own)], as);
    const sqlThere = sqlAt(own);
    await begun(follower, sqlThere);
    sql("ALTER SYSTEM SET synchronous_standby_names = '*'");
    sql("SELECT pg_reload_conf()");
    return {
      port: own,
      sql: sqlThere,
      promote: () => {
        sqlThere("ALTER SYSTEM SET synchronous_standby_names = ''");
        sqlThere("SELECT pg_promote()");
      },
      [Symbol.asyncDispose]: () => ended(follower, "SIGINT"),
    };
  };
  await start();
  return {
    port,
    authority,
    caFile,
    folder,
    dsn: (role = "postgres", word = ADMIN_PASSWORD, database = "postgres") =>
      `postgres://${role}:${word}@localhost:${port}/${database}`,
    sql,
    async present(options) {
      certify(options);
      sql("SELECT pg_reload_conf()");
      await sleep(300); // the server's main process takes the signal when it can
    },
    cpuSeconds: () => (server?.pid === undefined ? 0 : cpuSecondsOf(server.pid)),
    standby,
    kill: () => end("SIGQUIT"),
    start,
    async [Symbol.asyncDispose]() {
      await end("SIGINT");
      if (existsSync(folder)) rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function begun(server: ChildProcess, sql: (text: string) => string): Promise<void> {
  for (let waitedMs = 0; !answers(sql); waitedMs += 50) {
    if (server.exitCode !== null || waitedMs > 60_000) throw new Error("PostgreSQL does not start");
    await sleep(50);
  }
}

async function ended(server: ChildProcess | null, signal: "SIGQUIT" | "SIGINT"): Promise<void> {
  if (server === null || server.exitCode !== null || server.signalCode !== null) return;
  const exited = once(server, "exit");
  server.kill(signal);
  await exited;
}

const TICKS_PER_SECOND = 100;

/** Of a process, its children, and those that it has waited for: fields 4 and 14 to 17 of proc_pid_stat(5). */
function cpuSecondsOf(pid: number): number {
  let ticks = 0;
  for (const path of globSync("/proc/[0-9]*/stat")) {
    const text = existsSync(path) ? readFileSync(path, "utf8") : "";
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    const isIt = path === `/proc/${pid}/stat`;
    if (!isIt && fields[1] !== String(pid)) continue;
    const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(11, 15).map(Number);
    ticks += user + system + (isIt ? endedUser + endedSystem : 0);
  }
  return ticks / TICKS_PER_SECOND;
}

function answers(sql: (text: string) => string): boolean {
  try {
    return sql("SELECT 1") === "1";
  } catch {
    return false;
  }
}

/** The server refuses to run as root; null: we are not root. */
function unprivileged(): { readonly uid: number; readonly gid: number } | null {
  if (process.getuid?.() !== 0) return null;
  const idOf = (flag: string) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  return { uid: idOf("-u"), gid: idOf("-g") };
}
