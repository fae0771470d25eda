/**
 * The program is killed in the middle of changes, again and again, on one state file: what was answered is there, what
 * was not answered is there whole or not at all, and no revision is ever seen again.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type AnyJson, ManagedCore, stateFolder } from "../support/managed-core.ts";

export interface KillFindings {
  readonly kills: number;
  readonly acknowledged: number;
  /** Changes under way at a kill that turned out to be in the file. */
  readonly unanswered: number;
  readonly faults: readonly string[];
}

/** Users of a listener; above it they are deleted. */
const MANY = 12;
const TAGS = ["edge", "side"] as const;

/** `said` is called with the progress. */
export async function proveKills(
  kills: number,
  random: (below: number) => number,
  said: (found: KillFindings) => void = () => {},
): Promise<KillFindings> {
  using state = stateFolder();
  const writers = TAGS.map((tag) => new Writer(tag, random));
  let acknowledged = 0;
  let unanswered = 0;
  const faults: string[] = [];
  for (let round = 0; round <= kills; round++) {
    await using core = await ManagedCore.start({ store: state.store, folder: state.path });
    for (const writer of writers) {
      const found = await writer.compare(core);
      faults.push(...found.faults.map((text) => `after kill ${round}: ${text}`));
      if (found.tookUnanswered) unanswered++;
    }
    if (round === kills) break;
    let isOver = false; // by a fault, which the wait for it below throws
    const writing = Promise.all(writers.map((writer) => writer.write(core)));
    writing.catch(() => (isOver = true));
    const some = 1 + random(8);
    while (!isOver && answeredTo(writers) < acknowledged + some) await sleep(1);
    await sleep(random(15)); // into the middle of the next one
    await core.core.stop("SIGKILL");
    await writing;
    acknowledged = answeredTo(writers);
    if (round % 50 === 49) said({ kills: round + 1, acknowledged, unanswered, faults });
  }
  return { kills, acknowledged, unanswered, faults };
}

function answeredTo(writers: readonly Writer[]): number {
  return writers.reduce((sum, { answered }) => sum + answered, 0);
}

export function shownKills({ kills, acknowledged, unanswered, faults }: KillFindings): string {
  return (
    `${kills} kills, ${acknowledged} changes acknowledged, ${faults.length} lost or wrong; ` +
    `${unanswered} under way were in the file`
  );
}

/** What the API shows of a user that a change may have changed. */
type Known = Readonly<Record<string, unknown>>;
const knownOf = (json: AnyJson): Known => ({
  name: json.name,
  enabled: json.enabled,
  credential: json.uuid ?? json.password,
  url: json.subscription_url,
  generation: json.traffic_generation,
});

interface UnderWay {
  readonly id: string | null;
  readonly name: string;
}

/** The only one who changes the users of one listener, so it knows what must be there. */
class Writer {
  /** Changes that were acknowledged. */
  answered = 0;
  readonly #tag: "edge" | "side";
  readonly #random: (below: number) => number;
  #users = new Map<string, Known>();
  #revision = 0;
  #underWay: UnderWay | null = null;

  constructor(tag: "edge" | "side", random: (below: number) => number) {
    this.#tag = tag;
    this.#random = random;
  }

  /** Changes users until the program is gone. */
  async write(core: ManagedCore): Promise<void> {
    for (;;) {
      try {
        await this.#change(core);
        this.answered++;
      } catch (error) {
        if (!(error instanceof TypeError)) throw error; // of `fetch`: the program has ended
        return;
      }
    }
  }

  async #change(core: ManagedCore): Promise<void> {
    const ids = [...this.#users.keys()];
    const id = ids[this.#random(ids.length)] ?? null;
    const name = randomUUID();
    const kind = id === null ? 0 : ids.length >= MANY ? 1 : this.#random(6);
    this.#underWay = { id: kind === 0 ? null : id, name };
    const revision = this.#revision;
    const at = `/api/admin/users/${id}`;
    if (kind === 1) {
      const said = await core.ask("DELETE", `${at}?revision=${revision}`);
      if (said.status !== 204) throw new Error(said.text);
      this.#users.delete(id as string);
      this.#underWay = null;
      this.#revision = await core.revision(this.#tag);
      return;
    }
    const credential = this.#tag === "edge" ? { uuid: name } : { password: name };
    const off = id !== null && this.#users.get(id)?.["enabled"] === true;
    const calls: readonly (readonly [string, string, object])[] = [
      ["POST", "/api/admin/users", { inbound: this.#tag, name }],
      ["DELETE", at, {}],
      ["PUT", at, { name }],
      ["PUT", at, { enabled: !off }],
      ["PUT", at, credential],
      ["POST", `${at}/reset-traffic`, {}],
    ];
    const [method, path, fields] = calls[kind] as (typeof calls)[number];
    const said = await core.ask(method, path, { body: { ...fields, revision } });
    if (said.status >= 300) throw new Error(`${method} ${path}: ${said.status} ${said.text}`);
    this.#users.set(said.json.id, knownOf(said.json));
    this.#revision = said.json.revision;
    this.#underWay = null;
  }

  /** Looks at what is there, takes it as the new truth. */
  async compare(core: ManagedCore): Promise<{ faults: readonly string[]; tookUnanswered: boolean }> {
    const { json } = await core.ask("GET", `/api/admin/users?inbound=${this.#tag}`);
    const views = await Promise.all(json.users.map(({ id }) => core.user(id)));
    const found = new Map(views.map((view) => [view.id, knownOf(view)]));
    const revision = await core.revision(this.#tag);
    const faults: string[] = [];
    if (revision < this.#revision) faults.push(`${this.#tag}: revision ${revision}, was ${this.#revision}`);
    let tookUnanswered = revision > this.#revision && this.#revision > 0;
    for (const [id, known] of this.#users) {
      const now = found.get(id);
      if (JSON.stringify(now) === JSON.stringify(known)) continue;
      if (this.#underWay?.id !== id) faults.push(`${this.#tag}: ${id} ${JSON.stringify(now)}`);
      tookUnanswered = true;
    }
    for (const [id, { name }] of found)
      if (!this.#users.has(id) && this.#underWay?.name !== name) faults.push(`${this.#tag}: ${id} came back`);
    this.#users = found;
    this.#revision = revision;
    this.#underWay = null;
    return { faults, tookUnanswered };
  }
}
