/**
 * What a TUN inbound is made of, for the life of one device: the device, its stack, the listeners of the kernel behind it,
 * and the capture that brings traffic.
 */
import type { Capture, CapturePlan, Prefix, TunAddress } from "#core/capture.ts";
import { ConfigError } from "#core/errors.ts";
import type { KernelBypass } from "#core/kernel-direct.ts";
import type { Log } from "#core/log.ts";
import { ANY_V6 } from "#net/address/ip.ts";
import type { HandedState, InheritedSockets, ListeningSocket } from "#net/listen/inherited-sockets.ts";
import type { TunDevice } from "#platform/tun.ts";
import { BypassSlot } from "./bypass-slot.ts";
import { adoptDevice, mtuOf, openDevice } from "./device.ts";
import { DnsQuestions, type DnsQuestionsEnv } from "./dns-questions.ts";
import { type EchoEnv, Echoes } from "./echoes.ts";
import { deviceKey, flowsKey, handles, listenerKey, statesOf, waysKey } from "./handing-over.ts";
import { Hijack } from "./hijack.ts";
import { Intake, type IntakeEnv } from "./intake.ts";
import { TunListener } from "./listener.ts";
import { PacketWriter } from "./packet-writer.ts";
import { tunAddress, type TunSettings } from "./settings.ts";
import { Stack, type StackAddress } from "./stack.ts";

export interface PartsEnv extends IntakeEnv, EchoEnv, DnsQuestionsEnv {
  readonly log: Log;
  /** What sockets that leave must have while traffic is captured; in force before it is, until after. */
  readonly openEgress: (settings: TunSettings, device: string) => AsyncDisposable;
  readonly openCapture: (plan: CapturePlan) => Promise<Capture>;
  /** Lets the kernel forward some traffic by itself; null: none. Ends before the capture. */
  readonly openBypass: (settings: TunSettings, context: BypassPlace) => Promise<KernelBypass | null>;
  /** What these rule providers hold now, all in one list. */
  readonly prefixesOf: (providers: readonly string[]) => readonly Prefix[];
  /** Of another process of weir, where this one takes its place. */
  readonly inherited: InheritedSockets;
}

export interface BypassPlace {
  readonly device: string;
  readonly capture: Capture;
  /** From the process before, see `KernelBypass.ways`; the caller closes it. */
  readonly ways: number | null;
}

export interface Parts extends AsyncDisposable {
  readonly device: TunDevice;
  readonly stack: Stack;
  readonly capture: Capture | null;
  /** Packets are read and connections handed over from here on. `onGone`: the device was deleted by another program. */
  activate(onGone: () => void): void;
  /** What `activate` makes in the kernel is there. */
  settled(): Promise<void>;
  /** Until `activate` nothing that was learnt makes the kernel forward. */
  pauseBypass(): Promise<void>;
  /** For another process, which gets descriptors of the same files. */
  handles(): readonly ListeningSocket[];
  /** Nothing is read and accepted any more until `activate`; answers with what another process has to know of it. */
  pause(): readonly HandedState[];
  /** Another process captures. */
  leave(): Promise<void>;
}

const TICK_MS = 1_000;

/**
 * In the order of starting; disposing is the same backwards, so that the capture ends before the listeners do. Throws
 * `ConfigError` naming the key, with nothing left open.
 */
export async function openParts(settings: TunSettings, env: PartsEnv): Promise<Parts> {
  await using undo = new AsyncDisposableStack();
  const own = ownAddresses(settings);
  const hijack = new Hijack(
    settings.dnsHijack,
    [own.inet4, own.inet6].flatMap((address) => address?.next ?? []),
  );
  const taken = env.inherited.take(deviceKey(settings));
  const device = taken === null ? openDevice(settings, env.log) : adoptDevice(taken);
  undo.defer(() => device.close());
  const intake = undo.adopt(new Intake(settings, hijack, env), (opened) => opened.close());
  const listeners = await openListeners(undo, own, { settings, intake, inherited: env.inherited });
  const stack = openStack(undo, { settings, env, device, hijack, intake, listeners });
  intake.stack = stack;
  undo.use(env.openEgress(settings, device.name));
  const plan = planOf(settings, { device, ...own, redirectPort: listeners.redirectPort }, env);
  const captures = settings.capture.autoRoute && settings.fileDescriptor === 0;
  const capture = captures ? undo.use(await env.openCapture(plan)) : null;
  const bypass = undo.use(
    new BypassSlot(
      async (ways) =>
        capture === null ? null : env.openBypass(settings, { device: device.name, capture, ways }),
      { ways: env.inherited.take(waysKey(settings))?.fd ?? null, log: env.log },
    ),
  );
  if (taken === null) await bypass.open(); // else the process before has one
  env.log.info(`[TUN] ${settings.name} listening on ${device.name}`);
  const owned = undo.move();
  return {
    device,
    stack,
    capture,
    activate: (onGone) => {
      goOn(settings, stack, env);
      for (const listener of listeners.listeners) listener.activate();
      device.receive((length) => stack.receive(length), onGone);
      void bypass.tryOpen();
      if (taken !== null) void capture?.confirm();
    },
    settled: () => bypass.settled,
    pauseBypass: () => bypass.pause(),
    handles: () => handles(settings, { device, listeners: listeners.listeners, ways: bypass.ways }),
    pause: () => {
      device.pause();
      for (const listener of listeners.listeners) listener.pause();
      return statesOf(settings, stack);
    },
    leave: async () => {
      await bypass.close();
      await capture?.leave();
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

interface Own {
  readonly inet4: TunAddress | null;
  readonly inet6: TunAddress | null;
}

function ownAddresses({ addresses }: TunSettings): Own {
  const own = { inet4: tunAddress(addresses, 4), inet6: tunAddress(addresses, 6) };
  if (own.inet4 === null && own.inet6 === null)
    throw new ConfigError("tun: needs an address; set dns.fake-ip-range or inet6-address");
  return own;
}

/** Listeners of the kernel: where the stack turns TCP to, and where auto-redirect does. */
interface Listeners {
  readonly inet4: StackAddress | null;
  readonly inet6: StackAddress | null;
  /** Null: without auto-redirect. */
  readonly redirectPort: number | null;
  readonly listeners: readonly TunListener[];
}

/** What the process before knew of its flows, if there was one. */
function goOn(settings: TunSettings, stack: Stack, { inherited, nowMs, log }: PartsEnv): void {
  for (const family of [4, 6] as const) {
    const nat = (family === 4 ? stack.inet4 : stack.inet6)?.nat ?? null;
    const bytes = inherited.takeState(flowsKey(settings, family));
    if (nat === null || bytes === null) continue;
    const release = nat.restore(bytes, nowMs());
    if (release === null) log.error(`[TUN] ${settings.name}: the flows of the process before are not known`);
    else void inherited.over.then(() => release(nowMs()));
  }
}

interface UnderListeners {
  readonly settings: TunSettings;
  readonly intake: Intake;
  readonly inherited: InheritedSockets;
}

async function openListeners(
  undo: AsyncDisposableStack,
  { inet4, inet6 }: Own,
  { settings, intake, inherited }: UnderListeners,
): Promise<Listeners> {
  const { capture } = settings;
  const listeners: TunListener[] = [];
  const listen = async (...[ip, on]: Parameters<typeof TunListener.open>): Promise<number> => {
    const taken = inherited.take(listenerKey(settings, listeners.length));
    const listener =
      taken === null || taken.endpoint === null
        ? await TunListener.open(ip, on)
        : TunListener.adopt(taken.endpoint, taken.fd, on);
    undo.defer(() => listener.close());
    listeners.push(listener);
    return listener.port;
  };
  const stackAddress = async (own: TunAddress | null): Promise<StackAddress | null> => {
    if (own === null) return null;
    return { ...own, listenPort: await listen(own.address.ip, (socket) => intake.natted(socket)) };
  };
  return {
    inet4: await stackAddress(inet4),
    inet6: await stackAddress(inet6),
    redirectPort: capture.autoRedirect ? await listen(ANY_V6, (socket) => intake.redirected(socket)) : null,
    listeners,
  };
}

interface UnderStack {
  readonly settings: TunSettings;
  readonly env: PartsEnv;
  readonly device: TunDevice;
  readonly hijack: Hijack;
  readonly intake: Intake;
  readonly listeners: Listeners;
}

function openStack(undo: AsyncDisposableStack, under: UnderStack): Stack {
  const { settings, env, device, hijack, intake, listeners } = under;
  const writer = new PacketWriter(device, mtuOf(settings));
  const echoes = undo.adopt(new Echoes({ ...env, settings, writer }), (opened) => opened.close());
  const questions = new DnsQuestions(env, writer);
  const stack = new Stack({
    device,
    writer,
    inet4: listeners.inet4,
    inet6: listeners.inet6,
    loopbackAddresses: settings.loopbackAddresses,
    hijack,
    question: (payload, packet) => questions.ask(payload, packet),
    echo: (packet) => echoes.ask(packet),
    open: (source, destination, flow) => intake.datagrams(source, destination, flow),
    tooLong: (bytes, { ip }) => env.log.debug(() => `[TUN] a reply of ${bytes} bytes to ${ip} is dropped`),
    nowMs: env.nowMs,
  });
  undo.defer(() => stack.close());
  const timer = setInterval(() => {
    stack.tick();
    echoes.tick();
  }, TICK_MS);
  undo.defer(() => clearInterval(timer));
  return stack;
}

/** What is captured by such a TUN, wherever its device comes to be. Throws `ConfigError`. */
export function planBefore(settings: TunSettings, env: Pick<PartsEnv, "prefixesOf">): CapturePlan {
  const device = { name: settings.device, index: 0 };
  return planOf(settings, { device, ...ownAddresses(settings), redirectPort: null }, env);
}

function planOf(
  { capture, dnsHijack, fakeRanges, ipv6, routeSets, routeExcludeSets }: TunSettings,
  found: Own & Pick<CapturePlan, "redirectPort" | "device">,
  { prefixesOf }: Pick<PartsEnv, "prefixesOf">,
): CapturePlan {
  const { name, index } = found.device;
  return {
    ...found,
    device: { name, index },
    options: capture,
    fakeRanges,
    routeSet: routeSets === null ? null : prefixesOf(routeSets),
    routeExcludeSet: routeExcludeSets === null ? null : prefixesOf(routeExcludeSets),
    ipv6,
    hijackDns: dnsHijack.length > 0,
  };
}
