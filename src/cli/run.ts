import { setTimeout as delay } from "node:timers/promises";
import { ConfigError, messageOf } from "#core/errors.ts";
import { endpointText } from "#core/session.ts";
import { logSummary } from "#config/summary.ts";
import type { WorkerBackendOptions } from "#dataplane/workers/main/worker-backend.ts";
import { openHost, type Host } from "#host/host.ts";
import { formatLine, LogHub, openDescriptorSink, type LineSink } from "#host/log.ts";
import { VERSION } from "#version.ts";
import { App } from "#app/app.ts";
import { giveUp } from "#backup/put-in-force.ts";
import type { ProgramUpdates } from "#app/updates.ts";
import { LINK_VARIABLE } from "#upgrade/link-variable.ts";
import type { Arrival } from "#upgrade/new-process.ts";
import { DRAIN_MS as UPGRADE_DRAIN_MS, Upgrades, type Upgraded } from "#upgrade/upgrades.ts";
import { openServiceManager, type ServiceManager } from "#platform/service-manager.ts";
import type { ParsedFlags } from "./flags.ts";
import { linesOf, overrideWith, setUp } from "./load.ts";
import { atExit, endWithin, restartProcess, runHook, survive } from "./process-end.ts";
import { embeddedSecret, showSecret, showSignInLink } from "./sign-in.ts";
import { homeOf, newFileText } from "./source.ts";
import { reportRestore, restoreAtStart } from "./staged-restore.ts";

/** What sessions get to end by themselves after SIGTERM or SIGINT; a second signal cuts it short. */
const DRAIN_MS = 3_000;
/** After the signal the program ends within this, whatever it waits for. */
const DEADLINE_MS = 8_000;
/** Behind the time for connections: the last counters go to the process that serves. */
const GIVING_MS = 180_000;
/** Where it comes in the middle of an upgrade: the stores are opened again first. */
const TAKING_BACK_MS = 30_000;
/** A process before this one that ends by the same signal gives its last counters within moments. */
const LAST_COUNTS_MS = 4_000;

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
  using arrival =
    env[LINK_VARIABLE] === undefined ? null : (await import("#upgrade/new-process.ts")).openArrival(env, log);
  try {
    const code = await serve(flags, env, { log, sink, seams, arrival });
    if (code !== 0) startAnew(homeOf(flags, env), "the configuration has errors", log);
    return code;
  } catch (error) {
    if (arrival === null) {
      startAnew(homeOf(flags, env), messageOf(error), log);
      throw error;
    }
    fatal(sink, messageOf(error));
    arrival.fail(messageOf(error));
    log.flush();
    process.exit(1); // what is half open would keep it alive
  }
}

/** Where a start by a restored state has failed: the next one takes that back. */
function startAnew(home: string, reason: string, log: LogHub): void {
  if (!giveUp(home, reason)) return;
  log.error(`restore: the start by it has failed, so it is taken back: ${reason}`);
  restartProcess(log);
}

interface Opened extends Surroundings {
  /** Null: this process takes no other one's place. */
  readonly arrival: Arrival | null;
}

async function serve(
  flags: ParsedFlags,
  env: NodeJS.ProcessEnv,
  { log, sink, seams, arrival }: Opened,
): Promise<number> {
  const restored = arrival === null ? await restoreAtStart(homeOf(flags, env), log) : null;
  const setup = setUp(flags, env, log, { writes: arrival === null });
  if (setup.source.isNew !== undefined) log.info(newFileText(setup.source));
  const { file, result } = setup.first();
  log.level = result.config?.logLevel ?? log.level;
  logSummary(log, file, result.warnings);
  if (result.errors !== undefined) {
    const lines = linesOf(file, result.errors);
    if (arrival !== null) throw new ConfigError(lines.join("\n"));
    for (const line of lines) fatal(sink, line);
    return 1;
  }

  using _faults = survive(log);
  using service = openServiceManager(env, log);
  using signals = listenToSignals(log, service);
  await arrival?.check(result.config);
  using host = openHost(setup.home, setup.files, log, {
    seams,
    ...(arrival === null ? {} : { inherited: arrival.sockets, movedBefore: await arrival.stores() }),
  });
  // A second signal or the deadline: what users have moved is written all the same.
  using _last = atExit(() => {
    host.users.close();
    host.journal.close();
  });
  const secret = embeddedSecret(flags, setup);
  const upgrading = Promise.withResolvers<Upgrades>();
  const app = await App.start(result.config, {
    host,
    loader: setup.loader,
    override: overrideWith(flags, secret, setup),
    restart: signals.restart,
    updates: updatesBy(upgrading.promise),
    takesOver: arrival === null ? undefined : (allocate) => arrival.begin(host, allocate),
  });
  arrival?.settled();
  announce(app, log);
  showSecret(app, secret);
  if (arrival === null) showSignInLink(flags, app, host);
  try {
    if (arrival === null) runHook(flags, "post-up");
  } catch (error) {
    await app.close(0); // what listens would keep the process alive
    throw error;
  }
  await reportRestore(restored, host);
  await arrival?.left; // until then the service manager would not listen to this process
  service.ready(statusOf(app));
  using upgrades = new Upgrades({ app, host, env });
  upgrading.resolve(upgrades);
  await upgrades.listen();
  // Where nothing could be listened on there is nothing to keep the process alive but the wish of its user.
  const alive = setInterval(() => {}, 0x7fff_ffff);
  const why = await Promise.race([signals.ended(app, upgrades), upgrades.done]);
  clearInterval(alive);
  const tooLong = delay(TAKING_BACK_MS, null, { ref: false });
  const upgraded = typeof why === "object" ? why : await Promise.race([upgrades.stop(), tooLong]);
  if (upgraded !== null) {
    upgrades[Symbol.dispose]();
    return await giveWay(upgraded, { app, host, service, signals, arrival });
  }
  log.info(why === "restart" ? "restarting" : "shutting down");
  service.stopping();
  endWithin(DEADLINE_MS, log);
  const onCounted = async (): Promise<void> => {
    await Promise.race([arrival?.over, delay(LAST_COUNTS_MS, undefined, { ref: false })]);
  };
  await app.close(DRAIN_MS, { restarting: why === "restart", onCounted });
  runHook(flags, "post-down");
  if (why === "restart") restartProcess(log);
  return 0;
}

/** What comes with the arguments of this process. */
function updatesBy(upgrades: Promise<Upgrades>): ProgramUpdates {
  return {
    checkArgs: [...process.argv.slice(2), "-t"],
    async takeOver(to) {
      const answer = await (await upgrades).ask({ to, drainMs: UPGRADE_DRAIN_MS });
      return answer.done ? null : answer.reason;
    },
  };
}

interface Leaving {
  readonly app: App;
  readonly host: Host;
  readonly service: ServiceManager;
  readonly signals: Signals;
  readonly arrival: Arrival | null;
}

/** Another process serves: what is open here goes on until it ends, its time is up, or a signal comes. */
async function giveWay(
  { successor, drainMs }: Upgraded,
  { app, host, service, signals, arrival }: Leaving,
): Promise<number> {
  const { log, live, sockets } = host;
  log.info(`process ${successor.pid} serves from now on; ${live.size} connections go on here`);
  service.succeededBy(successor.pid);
  const onCounted = async (): Promise<void> => {
    await arrival?.over; // a process before this one counts here
    await successor[Symbol.asyncDispose]();
  };
  const closed = app.close(drainMs, { onCounted });
  successor.begin();
  void signals.asked.then(() => {
    live.closeAll();
    sockets.cutOff();
  });
  // It outlives a process before it, which may have more time.
  const late = Promise.all([delay(drainMs, undefined, { ref: false }), arrival?.over]);
  void late.then(() => endWithin(GIVING_MS, log));
  await closed;
  return 0;
}

function announce(app: App, log: LogHub): void {
  for (const { name, type, endpoints } of app.inbounds)
    for (const at of new Set(endpoints.map(endpointText))) log.info(`${name} listening at ${at} (${type})`);
  for (const { owner, endpoint } of app.dnsAddresses)
    log.info(`${owner} listening at ${endpointText(endpoint)}`);
  log.info(`weir ${VERSION} is running: ${statusOf(app)}`);
  if (!isReachable(app))
    log.error(
      "no client can reach it: no listener, TUN or controller is open; see above, or the file names none",
    );
}

function isReachable({ config, controllerEndpoints, inbounds }: App): boolean {
  const { tun, tunListeners, dns } = config;
  if (tun.enable || tunListeners.length > 0 || (dns.listen ?? dns.listenQuic ?? dns.listenH3) !== null)
    return true; // what they cannot they say themselves
  return controllerEndpoints.length > 0 || inbounds.some(({ endpoints }) => endpoints.length > 0);
}

function statusOf({ config }: App): string {
  return `mode ${config.mode}, ${config.rules.length} rules, ${config.proxies.length} proxies`;
}

interface Signals extends Disposable {
  restart(): void;
  /** Settles when a signal or the API has asked for the end. */
  readonly asked: Promise<"signal" | "restart">;
  /** The same; until then SIGHUP reloads `app`, and SIGUSR2 starts the same command in its place. */
  ended(app: App, upgrades: Upgrades): Promise<"signal" | "restart">;
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
      for (const fault of messageOf(error).split("\n"))
        log.error(`reload failed, the old configuration goes on: ${fault}`);
    }
    service.ready(statusOf(app));
  };
  const onReload = (): void => {
    asked = running === null;
    if (running !== null) void reload(running);
  };
  let program: Upgrades | null = null;
  const onUpgrade = (): void => void program?.ask({ to: null, drainMs: UPGRADE_DRAIN_MS });
  process.on("SIGTERM", onEnd).on("SIGINT", onEnd).on("SIGHUP", onReload).on("SIGUSR2", onUpgrade);
  return {
    restart: () => end.resolve("restart"),
    asked: end.promise,
    ended(app, upgrades) {
      program = upgrades;
      running = app;
      if (asked) onReload();
      return end.promise;
    },
    [Symbol.dispose]() {
      process.off("SIGTERM", onEnd).off("SIGINT", onEnd).off("SIGHUP", onReload).off("SIGUSR2", onUpgrade);
    },
  };
}
