/** The steps of a Containerfile without a container builder: run one by one in a copy of this machine's Debian. */
import assert from "node:assert/strict";
import type { DebianSystem } from "./debian-system.ts";

export interface Step {
  readonly word: string;
  readonly rest: string;
}

/** Instructions in their order, without comments; each stands on one line. */
export function stepsOf(text: string): readonly Step[] {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return lines.map((line) => {
    const [, word = "", rest = ""] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
    assert.ok(word !== "", `no instruction: ${line}`);
    return { word, rest };
  });
}

export function lastOf(steps: readonly Step[], word: string): string {
  const found = steps.findLast((step) => step.word === word);
  assert.ok(found !== undefined, `there is no ${word}`);
  return found.rest;
}

/** Runs RUN and COPY from /mnt. Packages are not fetched, only looked for: the machine has to have them. */
export async function buildInside({ sh }: DebianSystem, steps: readonly Step[]): Promise<void> {
  for (const { word, rest } of steps) {
    const packages = /apt-get install -y --no-install-recommends ([\w+. -]+?) &&/.exec(rest)?.[1];
    if (packages !== undefined) await sh(`dpkg -s ${packages}`);
    else if (word === "RUN") await sh(rest);
    else if (word === "COPY") await sh(copyLine(rest));
    else if (word === "VOLUME") await sh(`test -d ${rest}`);
  }
}

/** A copied folder is its contents, a copied file keeps its name where the place ends with a slash. */
function copyLine(rest: string): string {
  const words = rest.split(" ");
  const place = words.at(-1) ?? "";
  const copies = words.slice(0, -1).map((source) => {
    const from = `/mnt/${source}`;
    return `if [ -d ${from} ]; then mkdir -p ${place} && cp -r ${from}/. ${place}; else cp ${from} ${place}; fi`;
  });
  return ["set -e", `mkdir -p ${place.endsWith("/") ? place : "."}`, ...copies].join("\n");
}
