/**
 * A TUN inbound: the device, its stack, the listeners of the kernel behind it, and the capture that brings traffic. It is
 * whole when it exists; packets are read from `activate` on. Disposing it gives traffic back first.
 */
import type { Capture, CapturePlan, Prefix } from "#core/capture.ts";
import { ConfigError, messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import { ANY_V6 } from "#net/ip.ts";
import type { TunDevice } from "#platform/tun.ts";
import { mtuOf, openDevice } from "./device.ts";
import { DnsQuestions } from "./dns-questions.ts";
import { type EchoEnv, Echoes } from "./echoes.ts";
import { Hijack } from "./hijack.ts";
import { Intake, type IntakeEnv } from "./intake.ts";
import { TunListener } from "./listener.ts";
import { PacketWriter } from "./packet-writer.ts";
import { tunAddress, type TunSettings } from "./settings.ts";
import { Stack, type StackAddress } from "./stack.ts";

export interface TunEnv extends IntakeEnv, EchoEnv {
  readonly log: Log;
  /** What sockets that leave must have while traffic is captured; in force before it is, until after. */
  readonly openEgress: (settings: TunSettings, device: string) => AsyncDisposable;
  readonly openCapture: (plan: CapturePlan) => Promise<Capture>;
  /** Until it is disposed nothing new passes by a TUN that is made anew; null: nothing is held. */
  readonly hold: (settings: TunSettings) => Promise<AsyncDisposable | null>;
  /** Lets the kernel forward some traffic by itself; null: none. Ends before the capture. */
  readonly openBypass: (
    settings: TunSettings,
    device: string,
    capture: Capture,
  ) => Promise<AsyncDisposable | null>;
  /** What these rule providers hold now, all in one list. */
  readonly prefixesOf: (providers: readonly string[]) => readonly Prefix[];
}

/** A device that somebody deletes is made anew after this long; twice as long after each failure, up to the second. */
const REBUILD_MS = 1_000;
const MOST_REBUILD_MS = 60_000;
const TICK_MS = 1_000;

export class Tun implements AsyncDisposable {
  readonly settings: TunSettings;
  readonly #env: TunEnv;
  #parts: Parts | null;
  #active = false;
  #closed = false;
  #rebuild: NodeJS.Timeout | null = null;
  #held: AsyncDisposable | null = null;
  #rebuilding: Promise<void> = Promise.resolve();
  #updating: Promise<void> = Promise.resolve();

  private constructor(settings: TunSettings, env: TunEnv, parts: Parts) {
    this.settings = settings;
    this.#env = env;
    this.#parts = parts;
  }

  /** Throws `ConfigError` naming the key, with nothing left open. */
  static async open(settings: TunSettings, env: TunEnv): Promise<Tun> {
    if (settings.stack !== "system")
      env.log.info(`[TUN] stack ${settings.stack}: the system stack does its work`);
    const parts = await openParts(settings, env);
    return new Tun(settings, env, parts);
  }

  /** Empty while the device is being made anew. */
  get device(): string {
    return this.#parts?.device.name ?? "";
  }

  /** Null while the device is being made anew. */
  get capture(): Capture | null {
    return this.#parts?.capture ?? null;
  }

  /** Flows that NAT remembers. */
  get natSize(): number {
    const stack = this.#parts?.stack;
    return (stack?.inet4?.nat.size ?? 0) + (stack?.inet6?.nat.size ?? 0);
  }

  activate(): void {
    this.#active = true;
    this.#parts?.activate(() => this.#onGone());
  }

  /** Rule providers have changed. Failures are logged: the sets stay as they were. */
  updateSets(): Promise<void> {
    const { routeSets, routeExcludeSets } = this.settings;
    if (routeSets === null && routeExcludeSets === null) return Promise.resolve();
    this.#updating = this.#updating.then(() => this.#updateSets());
    return this.#updating;
  }

  /** One after the other, so that the last one is the newest. */
  async #updateSets(): Promise<void> {
    const { settings } = this;
    try {
      await this.capture?.updateSets({
        route: this.#env.prefixesOf(settings.routeSets ?? []),
        routeExclude: this.#env.prefixesOf(settings.routeExcludeSets ?? []),
      });
    } catch (error) {
      this.#env.log.error(`[TUN] the route sets could not be renewed: ${messageOf(error)}`);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    if (this.#rebuild !== null) clearTimeout(this.#rebuild);
    await this.#rebuilding;
    await this.#release();
    const parts = this.#parts;
    this.#parts = null;
    await parts?.[Symbol.asyncDispose]();
  }

  #onGone(): void {
    const parts = this.#parts;
    this.#parts = null;
    this.#env.log.error(`[TUN] somebody has deleted the device ${parts?.device.name}; it is made anew`);
    this.#rebuilding = this.#leave(parts);
  }

  async #leave(parts: Parts | null): Promise<void> {
    this.#held = await this.#env.hold(this.settings);
    try {
      await parts?.[Symbol.asyncDispose]();
    } catch (error) {
      this.#env.log.error(`[TUN] what belonged to the device: ${messageOf(error)}`);
    }
    this.#rebuildIn(REBUILD_MS);
  }

  #rebuildIn(delayMs: number): void {
    if (this.#closed) return;
    this.#rebuild = setTimeout(() => {
      this.#rebuilding = this.#openAgain(delayMs);
    }, delayMs);
  }

  async #openAgain(delayMs: number): Promise<void> {
    try {
      this.#parts = await openParts(this.settings, this.#env);
      if (this.#active) this.#parts.activate(() => this.#onGone());
    } catch (error) {
      this.#env.log.error(`[TUN] ${messageOf(error)}; trying again`);
      this.#rebuildIn(Math.min(delayMs * 2, MOST_REBUILD_MS));
    }
    await this.#release(); // also where it failed: without us traffic goes by itself
  }

  async #release(): Promise<void> {
    const held = this.#held;
    this.#held = null;
    await held?.[Symbol.asyncDispose]();
  }
}

interface Parts extends AsyncDisposable {
  readonly device: TunDevice;
  readonly stack: Stack;
  readonly capture: Capture | null;
  activate(onGone: () => void): void;
}

/** In the order of starting; disposing is the same backwards, so that traffic is given back before nobody listens. */
async function openParts(settings: TunSettings, env: TunEnv): Promise<Parts> {
  await using undo = new AsyncDisposableStack();
  const inet4 = tunAddress(settings.addresses, 4);
  const inet6 = tunAddress(settings.addresses, 6);
  if (inet4 === null && inet6 === null)
    throw new ConfigError("tun: needs an address; set dns.fake-ip-range or inet6-address");
  const hijack = new Hijack(
    settings.dnsHijack,
    [inet4, inet6].flatMap((own) => (own === null ? [] : [own.next])),
  );
  const device = openDevice(settings, env.log);
  undo.defer(() => device.close());
  const intake = undo.adopt(new Intake(settings, hijack, env), (opened) => opened.close());
  const listen = async (own: typeof inet4): Promise<StackAddress | null> => {
    if (own === null) return null;
    const listener = await TunListener.open(own.address.ip, (socket) => intake.natted(socket));
    undo.defer(() => listener.close());
    listeners.push(listener);
    return { ...own, listenPort: listener.port };
  };
  const listeners: TunListener[] = [];
  const writer = new PacketWriter(device, mtuOf(settings));
  const echoes = undo.adopt(new Echoes({ ...env, settings, writer }), (opened) => opened.close());
  const questions = new DnsQuestions(env, writer);
  const stack = new Stack({
    device,
    writer,
    inet4: await listen(inet4),
    inet6: await listen(inet6),
    loopbackAddresses: settings.loopbackAddresses,
    hijack,
    question: (payload, packet) => questions.ask(payload, packet),
    echo: (packet) => echoes.ask(packet),
    open: (source, destination, flow) => intake.datagrams(source, destination, flow),
    tooLong: (bytes, { ip }) => env.log.debug(() => `[TUN] a reply of ${bytes} bytes to ${ip} is dropped`),
    nowMs: env.nowMs,
  });
  intake.stack = stack;
  undo.defer(() => stack.close());
  const timer = setInterval(() => {
    stack.tick();
    echoes.tick();
  }, TICK_MS);
  undo.defer(() => clearInterval(timer));
  const { autoRoute, autoRedirect } = settings.capture;
  let redirectPort: number | null = null;
  if (autoRedirect) {
    const listener = await TunListener.open(ANY_V6, (socket) => intake.redirected(socket));
    undo.defer(() => listener.close());
    listeners.push(listener);
    redirectPort = listener.port;
  }
  undo.use(env.openEgress(settings, device.name));
  const capture =
    settings.fileDescriptor > 0 || !autoRoute
      ? null
      : undo.use(await env.openCapture(planOf(settings, { device, inet4, inet6, redirectPort }, env)));
  if (capture !== null) undo.use(await env.openBypass(settings, device.name, capture));
  env.log.info(`[TUN] ${settings.name} listening on ${device.name}`);
  const owned = undo.move();
  return {
    device,
    stack,
    capture,
    activate: (onGone) => {
      for (const listener of listeners) listener.activate();
      device.receive((length) => stack.receive(length), onGone);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function planOf(
  { capture, dnsHijack, ipv6, routeSets, routeExcludeSets }: TunSettings,
  found: Pick<CapturePlan, "inet4" | "inet6" | "redirectPort"> & { readonly device: TunDevice },
  { prefixesOf }: TunEnv,
): CapturePlan {
  const { name, index } = found.device;
  return {
    ...found,
    device: { name, index },
    options: capture,
    routeSet: routeSets === null ? null : prefixesOf(routeSets),
    routeExcludeSet: routeExcludeSets === null ? null : prefixesOf(routeExcludeSets),
    ipv6,
    hijackDns: dnsHijack.length > 0,
  };
}
