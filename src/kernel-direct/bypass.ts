/**
 * What one TUN with kernel-direct on has in the kernel besides its capture: a classifier if asked for, the rules on its
 * marks, and the learning that feeds both (kernel-direct.md §4.5, §4.8).
 */
import type { Capture, Prefix } from "#core/capture.ts";
import { ConfigError, messageOf } from "#core/errors.ts";
import type {
  BypassSettings,
  ClassifierSettings,
  FastPathView,
  KernelBypass,
  LearnedSetView,
} from "#core/kernel-direct.ts";
import type { Log } from "#core/log.ts";
import type { InboundInfo, Ip } from "#core/session.ts";
import { openBpf, possibleCpus } from "#platform/bpf.ts";
import { openNetlink, watchNetwork, type NetlinkSocket } from "#platform/netlink.ts";
import type { Consumer } from "./consumer.ts";
import { Classifier } from "./ebpf/classifier.ts";
import type { BypassViews, KernelDirect } from "./kernel-direct.ts";
import { nftPlane } from "./nft-plane.ts";
import type { Plane } from "./plane.ts";

/** The TUN. */
export interface BypassContext {
  readonly device: string;
  readonly inbound: Pick<InboundInfo, "ruleList" | "target">;
  readonly capture: Capture;
  /** What another process remembered of open connections, as a descriptor that the caller closes; null: nothing. */
  readonly ways: number | null;
}

export interface BypassEnv {
  readonly learning: KernelDirect;
  readonly log: Log;
  /** All addresses of the machine, now. */
  ownAddresses(): readonly Ip[];
  /** Those of its devices, now. */
  networks(socket: NetlinkSocket): readonly Prefix[];
}

const KEY = "kernel-direct-ebpf";

export class Bypass implements BypassViews, KernelBypass {
  readonly #settings: BypassSettings;
  readonly #context: BypassContext;
  readonly #env: BypassEnv;
  readonly #owned = new AsyncDisposableStack();
  #classifier: Classifier | null = null;
  #planes: readonly Plane[] = [];
  /** Null: nothing is learnt now. */
  #consumer: Consumer | null = null;

  private constructor(settings: BypassSettings, context: BypassContext, env: BypassEnv) {
    this.#settings = settings;
    this.#context = context;
    this.#env = env;
  }

  /** The table of the capture exists. Throws `ConfigError` with nothing left behind. */
  static async open(settings: BypassSettings, context: BypassContext, env: BypassEnv): Promise<Bypass> {
    const set = context.capture.directSet;
    if (set === null) throw new ConfigError("kernel-direct needs auto-redirect with nftables");
    await using undo = new AsyncDisposableStack();
    const bypass = undo.use(new Bypass(settings, context, env));
    const classifier = await bypass.#tryClassifier();
    const proxied = settings.classifier?.proxyMode === true ? settings.classifier.proxyPrefixes : [];
    bypass.#planes = [nftPlane(set, proxied), ...(classifier === null ? [] : [classifier])];
    bypass.resume();
    bypass.#owned.defer(() => bypass.pause());
    const { learning } = env;
    learning.bypasses.add(bypass);
    bypass.#owned.defer(() => void learning.bypasses.delete(bypass));
    undo.move();
    return bypass;
  }

  get learnedSet(): LearnedSetView {
    const { learning } = this.#env;
    const { maxEntries } = this.#settings;
    const none = { maxEntries, maxRecords: 0, directAddresses: 0, proxyAddresses: 0, records: 0 };
    return { ...(this.#consumer?.counts ?? none), evictions: learning.evictions };
  }

  get fastPath(): FastPathView | null {
    const classifier = this.#classifier;
    const settings = this.#settings.classifier;
    if (classifier === null || settings === null) return null;
    const { redirects, proxyMode, proxyMark, directMark, inputMark, interfaces, flowEntries } = settings;
    const { direct, proxy, flowHits } = classifier.counts;
    return {
      backend: redirects ? "ebpf-tc-lpm-lru-redirect" : "ebpf-tc-lpm-lru",
      requestedInterfaces: [...new Set(interfaces)].sort(),
      interfaces: classifier.ports,
      proxyRedirectInterface: redirects ? this.#context.device : null,
      mark: directMark,
      proxyMark: proxyMode ? proxyMark : 0,
      inputMark,
      prefixes: classifier.prefixes,
      flowMaxEntries: flowEntries,
      direct,
      proxy,
      flowHits: flowHits.packets,
      updatedAtMs: classifier.updatedAtMs,
    };
  }

  get ways(): number | null {
    return this.#classifier?.ways ?? null;
  }

  resume(): void {
    if (this.#consumer !== null) return;
    const { maxEntries } = this.#settings;
    const { inbound } = this.#context;
    this.#consumer = this.#env.learning.attach({ maxEntries, inbound, planes: this.#planes });
  }

  async pause(): Promise<void> {
    const consumer = this.#consumer;
    this.#consumer = null;
    if (consumer !== null) await this.#env.learning.detach(consumer);
  }

  /** Learning ends, then the classifier, then the rules on its marks. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#owned.disposeAsync();
  }

  /** Null: none is asked for, or there can be none and it is not required. */
  async #tryClassifier(): Promise<Classifier | null> {
    const settings = this.#settings.classifier;
    if (settings === null) return null;
    const { learning, log } = this.#env;
    learning.lastError = null;
    try {
      const classifier = await this.#openClassifier(settings);
      learning.report(null);
      return classifier;
    } catch (error) {
      learning.report(messageOf(error));
      if (settings.required) throw new ConfigError(`kernel-direct-ebpf-required: ${messageOf(error)}`);
      log.warning(`${KEY}: ${messageOf(error)}; nftables alone decides`);
      return null;
    }
  }

  async #openClassifier(settings: ClassifierSettings): Promise<Classifier> {
    const { capture, device, ways } = this.#context;
    const { fakeRanges } = this.#settings;
    await using undo = new AsyncDisposableStack();
    const netlink = undo.use(openNetlink(KEY));
    const redirectTo = settings.redirects ? device : null;
    const classifier = undo.use(
      new Classifier(
        { ...settings, redirectTo, fakeRanges, ways },
        {
          bpf: openBpf(KEY),
          netlink,
          possibleCpus: possibleCpus(),
          ownAddresses: () => this.#env.ownAddresses(),
          networks: () => this.#env.networks(netlink),
          nowMs: Date.now,
          onFailed: (error) => this.#onFailed(error),
        },
      ),
    );
    const { directMark, proxyMark, proxyMode, redirects } = settings;
    const proxy = proxyMode && !redirects ? proxyMark : null;
    undo.defer(() => capture.steer(null));
    await capture.steer({ direct: directMark, proxy, untracked: redirects });
    const parts = ["link", "address"] as const;
    undo.use(watchNetwork(KEY, { parts, tables: [], log: this.#env.log }, () => classifier.refresh()));
    this.#classifier = classifier;
    this.#owned.use(undo.move());
    classifier.refresh(); // no event has reported changes from before the rules were made
    return classifier;
  }

  /** The classifier has removed itself; nftables continues alone. */
  #onFailed(error: unknown): void {
    const { learning, log } = this.#env;
    this.#classifier = null;
    learning.report(messageOf(error));
    log.error(`${KEY}: ${messageOf(error)}; the classifier is gone, nftables alone decides`);
    this.#context.capture
      .steer(null)
      .catch((failure: unknown) => log.error(`${KEY}: the rules on its marks stay: ${messageOf(failure)}`));
  }
}
