/**
 * Openings in the firewalls of OpenWrt (`fw4`) and Docker (`DOCKER-USER`): a verdict of our own table does not override
 * a drop in theirs. Every rule carries a comment, by which it is found again.
 */
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { NftSession } from "#platform/nftables.ts";

/** Also visible in a listing of the rules. */
const COMMENT = "svc: auto-redirect";

interface Place {
  readonly chain: string;
  readonly directions: readonly ("iifname" | "oifname")[];
}

const PLACES: readonly Place[] = [
  { chain: "inet fw4 input", directions: ["iifname"] },
  { chain: "inet fw4 forward", directions: ["iifname", "oifname"] },
  { chain: "ip filter DOCKER-USER", directions: ["iifname", "oifname"] },
  { chain: "ip6 filter DOCKER-USER", directions: ["iifname", "oifname"] },
];

export class FirewallOpenings {
  readonly #session: () => NftSession;
  readonly #device: string;
  readonly #log: Log;
  #removed = false;
  /** Of what runs: two that write at once would leave an opening twice, or after the end. */
  #turn: Promise<void> = Promise.resolve();

  /** `session` gives the one that is open now; `device` is the TUN's name as nftables reads it. */
  constructor(session: () => NftSession, device: string, log: Log) {
    this.#session = session;
    this.#device = device;
    this.#log = log;
  }

  /** Puts the openings where they are missing; firewalls that start again lose them. Never throws. */
  keep(): Promise<void> {
    return (this.#turn = this.#turn.then(() => (this.#removed ? undefined : this.#keep())));
  }

  /** For good. Never throws. */
  remove(): Promise<void> {
    this.#removed = true;
    return (this.#turn = this.#turn.then(() => this.#remove()));
  }

  async #keep(): Promise<void> {
    for (const { chain, directions } of PLACES) {
      const shown = await this.#list(chain);
      if (shown === null || this.#isOpen(shown, directions.length)) continue;
      const insert = directions.map(
        (direction) =>
          `insert rule ${chain} ${direction} ${this.#device} counter accept comment "${COMMENT}"\n`,
      );
      await this.#try(chain, [...ours(shown).map((handle) => deletion(chain, handle)), ...insert]);
    }
  }

  async #remove(): Promise<void> {
    for (const { chain } of PLACES) {
      const handles = ours((await this.#list(chain)) ?? "");
      if (handles.length > 0)
        await this.#try(
          chain,
          handles.map((handle) => deletion(chain, handle)),
        );
    }
  }

  /** Neither too few nor those of another device, which a crash left behind. */
  #isOpen(shown: string, count: number): boolean {
    const lines = shown.split("\n").filter((line) => line.includes(COMMENT));
    return lines.length === count && lines.every((line) => line.includes(`ifname ${this.#device} `));
  }

  /** Null where there is no such chain. */
  async #list(chain: string): Promise<string | null> {
    return this.#session()
      .run(`list chain ${chain}`)
      .catch(() => null);
  }

  async #try(chain: string, commands: readonly string[]): Promise<void> {
    try {
      await this.#session().run(commands.join(""));
    } catch (error) {
      this.#log.warning(`auto-redirect: the chain ${chain} could not be changed: ${messageOf(error)}`);
    }
  }
}

const OURS = new RegExp(`comment "${COMMENT}" # handle (\\d+)`, "g");

/** Handles of our rules in what `list chain` shows. */
function ours(shown: string): readonly string[] {
  return [...shown.matchAll(OURS)].map(([, handle]) => handle as string);
}

function deletion(chain: string, handle: string): string {
  return `delete rule ${chain} handle ${handle}\n`;
}
