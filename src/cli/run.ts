import { execFileSync, spawn } from "node:child_process";
import { messageOf } from "#core/errors.ts";
import { endpointText } from "#core/session.ts";
import { logSummary } from "#config/summary.ts";
import type { WorkerBackendOptions } from "#dataplane/workers/main/worker-backend.ts";
import { openHost } from "#host/host.ts";
import { formatLine, LogHub, openDescriptorSink, type LineSink } from "#host/log.ts";
import { VERSION } from "#version.ts";
import { App } from "#app/app.ts";
import { openServiceManager, type ServiceManager } from "#platform/service-manager.ts";
import { newSecret } from "#app/controller-slot.ts";
import type { ParsedFlags } from "./flags.ts";
import { linesOf, overrideWith, setUp, type Setup } from "./load.ts";
import { newFileText } from "./source.ts";

/** What sessions get to end by themselves after SIGTERM or SIGINT; a second signal cuts it short. */
const DRAIN_MS = 3_000;
/** After the signal the program ends within this, whatever it waits for. */
const DEADLINE_MS = 8_000;

/** Where lines go; and what tests hand in of the workers. */
interface Surroundings extends Pick<WorkerBackendOptions, "seams"> {
  readonly log: LogHub;
  readonly sink: LineSink;
}

/** The main job: runs until a signal ends it and answers with the exit code. `seams`: for tests, see dataplane/workers/shared/seams.ts. */
export async function run(
  flags: ParsedFlags,
  env: NodeJS.ProcessEnv,
  seams?: SharedArrayBuffer,
): Promise<number> {
  const sink = openDescriptorSink(1);
  const log = new LogHub("info", sink);
  try {
    return await runWith(flags, env, { log, sink, seams });
  } catch (error) {
    fatal(sink, messageOf(error));
    return 1;
  } finally {
    log.flush();
  }
}

function fatal(sink: LineSink, text: string): void {
  sink.write(formatLine({ level: "fatal", text, atMs: Date.now() }));
}

async function runWith(
  flags: ParsedFlags,
  env: NodeJS.ProcessEnv,
  { log, sink, seams }: Surroundings,
): Promise<number> {
  const setup = setUp(flags, env, log, { writes: true });
  if (setup.source.isNew !== undefined) log.info(newFileText(setup.source));
  const { file, result } = setup.first();
  log.level = result.config?.logLevel ?? log.level;
  logSummary(log, file, result.warnings);
  if (result.errors !== undefined) {
    for (const line of linesOf(file, result.errors)) fatal(sink, line);
    return 1;
  }

  using _faults = survive(log);
  using service = openServiceManager(env, log);
  using signals = listenToSignals(log, service);
  using host = openHost(setup.home, setup.files, log, seams);
  // A second signal or the deadline: what users have moved is written all the same.
  using _last = atExit(() => {
    host.users.close();
    host.journal.close();
  });
  const secret = embeddedSecret(flags, setup);
  const app = await App.start(result.config, {
    host,
    loader: setup.loader,
    override: overrideWith(flags, secret, setup),
    restart: signals.restart,
  });
  announce(app, log);
  const [endpoint] = app.controllerEndpoints;
  if (secret !== null && endpoint?.kind === "http")
    process.stderr.write(`Controller: http://${endpoint.text}/ui/  secret: ${secret}\n`);
  try {
    runHook(flags, "post-up");
  } catch (error) {
    await app.close(0); // what listens would keep the process alive
    throw error;
  }
  service.ready(statusOf(app));
  // Where nothing could be listened on there is nothing to keep the process alive but the wish of its user.
  const alive = setInterval(() => {}, 0x7fff_ffff);
  const why = await signals.ended(app);
  clearInterval(alive);
  log.info(why === "restart" ? "restarting" : "shutting down");
  service.stopping();
  endWithin(DEADLINE_MS, log);
  await app.close(DRAIN_MS, { restarting: why === "restart" });
  runHook(flags, "post-down");
  if (why === "restart") restartProcess(log);
  return 0;
}

/** The built-in configuration has no secret that a user could know, so each start makes one and shows it once. */
function embeddedSecret(flags: ParsedFlags, { source }: Setup): string | null {
  return source.embedded === true && flags.text("secret") === null ? newSecret() : null;
}

function announce(app: App, log: LogHub): void {
  for (const { name, type, endpoints } of app.inbounds)
    for (const endpoint of endpoints) log.info(`${name} listening at ${endpointText(endpoint)} (${type})`);
  log.info(`weir ${VERSION} is running: ${statusOf(app)}`);
  if (!isReachable(app))
    log.error(
      "no client can reach it: no listener, TUN or controller is open; see above, or the file names none",
    );
}

function isReachable({ config, controllerEndpoints, inbounds }: App): boolean {
  const { tun, tunListeners, dns } = config;
  if (tun.enable || tunListeners.length > 0 || dns.listen !== null) return true; // what they cannot they say themselves
  return controllerEndpoints.length > 0 || inbounds.some(({ endpoints }) => endpoints.length > 0);
}

function statusOf({ config }: App): string {
  return `mode ${config.mode}, ${config.rules.length} rules, ${config.proxies.length} proxies`;
}

interface Signals extends Disposable {
  restart(): void;
  /** Settles when the program is to end; until then SIGHUP reloads `app`. */
  ended(app: App): Promise<"signal" | "restart">;
}

/** SIGHUP reloads; SIGTERM and SIGINT end, and end at once when they come twice. None is lost while the start takes its time. */
function listenToSignals(log: LogHub, service: ServiceManager): Signals {
  const end = Promise.withResolvers<"signal" | "restart">();
  let ending = false;
  let running: App | null = null;
  let asked = false;
  const onEnd = (): void => {
    if (ending) process.exit(0);
    ending = true;
    end.resolve("signal");
  };
  const reload = async (app: App): Promise<void> => {
    service.reloading();
    try {
      await app.reload();
      log.info("configuration reloaded");
    } catch (error) {
      log.error(`reload failed, the old configuration goes on:\n${messageOf(error)}`);
    }
    service.ready(statusOf(app));
  };
  const onReload = (): void => {
    asked = running === null;
    if (running !== null) void reload(running);
  };
  process.on("SIGTERM", onEnd).on("SIGINT", onEnd).on("SIGHUP", onReload);
  return {
    restart: () => end.resolve("restart"),
    ended(app) {
      running = app;
      if (asked) onReload();
      return end.promise;
    },
    [Symbol.dispose]: () => void process.off("SIGTERM", onEnd).off("SIGINT", onEnd).off("SIGHUP", onReload),
  };
}

/**
 * An uncaught fault of ours costs the connection in which it happened, not the others: it is logged with its stack, and
 * the program continues.
 */
function survive(log: LogHub): Disposable {
  const onFault = (fault: unknown): void =>
    log.error(`a fault of weir, please report it: ${fault instanceof Error ? fault.stack : String(fault)}`);
  process.on("uncaughtException", onFault).on("unhandledRejection", onFault);
  return {
    [Symbol.dispose]: () => void process.off("uncaughtException", onFault).off("unhandledRejection", onFault),
  };
}

/** `work` is synchronous, and runs once even where the process ends in the middle of things. */
function atExit(work: () => void): Disposable {
  process.once("exit", work);
  return { [Symbol.dispose]: () => void process.off("exit", work) };
}

/** The last resort: something that does not want to end, a hook or a device, must not hold up a shutdown. */
function endWithin(deadlineMs: number, log: LogHub): void {
  setTimeout(() => {
    log.error(`not everything ended within ${deadlineMs} ms: ${process.getActiveResourcesInfo().join(", ")}`);
    log.flush();
    process.exit(0);
  }, deadlineMs).unref();
}

/** `-post-up` fails the start, `-post-down` only says so. */
function runHook(flags: ParsedFlags, hook: "post-up" | "post-down"): void {
  const command = flags.text(hook);
  if (command === null) return;
  try {
    execFileSync(command, { shell: true, stdio: "inherit" });
  } catch (error) {
    if (hook === "post-up") throw new Error(`post-up: ${messageOf(error)}`, { cause: error });
    process.stderr.write(`post-down: ${messageOf(error)}\n`);
  }
}

/** The same program with the same arguments; on Unix in the same process. */
function restartProcess(log: LogHub): void {
  log.flush();
  const [command, ...args]: [string, ...string[]] = [
    process.execPath,
    ...process.execArgv,
    ...process.argv.slice(1),
  ];
  if (process.platform !== "win32" && process.execve)
    process.execve(command, [command, ...args], process.env);
  spawn(command, args, { detached: true, stdio: "inherit" }).unref();
}
