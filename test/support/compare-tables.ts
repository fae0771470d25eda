/** One session, decided by the tables as another thread has them, by the router, and as `explain` shows it. */
import assert from "node:assert/strict";
import type { Decision } from "#core/router.ts";

import { factsOf } from "#router/session-facts.ts";
import { dataOfTables, decide, MAIN_LIST, NO_TARGET, openTables } from "#router/tables/decide.ts";
import { tablesCase } from "./random-tables.ts";

export interface Compared {
  decided: number;
  undecided: number;
}

const signal = new AbortController().signal;
const observer = {
  missed() {},
  disabled() {},
  entered() {},
  left() {},
  looked() {},
  passed() {},
};

/** Throws where they do not agree. */
export async function compareTables(sets: number, sessions: number, firstSeed = 1): Promise<Compared> {
  const found: Compared = { decided: 0, undecided: 0 };
  for (let seed = firstSeed; seed < firstSeed + sets; seed++) await compareSet(seed, sessions, found);
  return found;
}

async function compareSet(seed: number, sessions: number, found: Compared): Promise<void> {
  const { text, router, hasUnknown, session, findProcessMode } = tablesCase(seed);
  const { lists } = router;
  const tables = openTables(structuredClone(dataOfTables(lists)));
  for (let count = 0; count < sessions; count++) {
    const metadata = session();
    const what = () => `${JSON.stringify(metadata)}\n${text}`;
    const { ruleList } = metadata.inbound;
    const root = ruleList === null ? MAIN_LIST : lists.nested.findIndex(({ name }) => name === ruleList);
    const shared = decide(tables, root, factsOf(metadata, metadata, findProcessMode));
    const main = router.decide?.(metadata) ?? null;
    if (shared === null) {
      found.undecided++;
      if (!hasUnknown) assert.equal(main, null, what());
      continue;
    }
    const list = shared.list === MAIN_LIST ? lists.main : lists.nested[shared.list];
    const rule = shared.target === NO_TARGET ? null : list?.rules[shared.position];
    if (rule?.target.startsWith("PASS") === true) {
      assert.equal(main, null, what()); // which rule is next is for the main thread to find
      continue;
    }
    assert.equal(rule ?? null, main?.rule, what());
    const explained: Decision = await router.trace(metadata, signal, observer);
    assert.equal(explained.rule, main?.rule, what());
    assert.deepEqual(explained.chain, main?.chain, what());
    found.decided++;
  }
}
