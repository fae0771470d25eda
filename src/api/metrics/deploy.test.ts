/** The files of `deploy/` for Prometheus and Grafana ask for metrics that exist. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import * as z from "zod";
import { apiApp } from "../../../test/support/api-app.ts";

const DEPLOY = join(import.meta.dirname, "..", "..", "..", "deploy");
/** Prometheus makes this one itself. */
const FOREIGN = "up";

const dashboard = z.object({
  title: z.literal("weir"),
  uid: z.string(),
  schemaVersion: z.number(),
  templating: z.object({ list: z.array(z.object({ name: z.string(), type: z.string() })) }),
  panels: z.array(
    z.object({
      id: z.number(),
      type: z.enum(["row", "timeseries", "bargauge"]),
      title: z.string().min(1),
      gridPos: z.object({ h: z.number(), w: z.number(), x: z.number(), y: z.number() }),
      targets: z.array(z.object({ expr: z.string(), refId: z.string() })).optional(),
    }),
  ),
});

const alerts = z.object({
  groups: z.array(
    z.object({
      name: z.string(),
      rules: z.array(
        z.strictObject({
          alert: z.string().regex(/^Weir[A-Z]/),
          expr: z.string(),
          for: z
            .string()
            .regex(/^\d+[smh]$/)
            .optional(),
          labels: z.object({ severity: z.enum(["info", "warning", "critical"]) }),
          annotations: z.object({ summary: z.string(), description: z.string() }),
        }),
      ),
    }),
  ),
});

/** Names of metrics in an expression of PromQL; of a histogram the name without its ending. */
function namesIn(expression: string): readonly string[] {
  return (expression.match(/\b(?:weir|process)_[a-z_]+|\bup\b/g) ?? []).map((name) =>
    name.replace(/_(?:bucket|sum|count)$/, ""),
  );
}

async function shown(): Promise<ReadonlySet<string>> {
  const { app } = await apiApp();
  const { body } = await app.inject("/metrics");
  return new Set(Array.from(body.matchAll(/^# TYPE (\S+)/gm), ([, name = ""]) => name));
}

test("the dashboard is one of Grafana, its panels do not overlap, and its metrics exist", async () => {
  const { panels } = dashboard.parse(JSON.parse(readFileSync(join(DEPLOY, "grafana", "weir.json"), "utf8")));
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
  const cells = panels.flatMap(({ gridPos: { h, w, x, y } }) =>
    Array.from({ length: h * w }, (_, at) => `${x + (at % w)},${y + Math.floor(at / w)}`),
  );
  assert.equal(new Set(cells).size, cells.length);
  const expressions = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
  assert.ok(expressions.length > 15);
  await allExist(expressions);
});

test("the alert rules are ones of Prometheus, and their metrics exist", async () => {
  const { groups } = alerts.parse(parse(readFileSync(join(DEPLOY, "prometheus", "alerts.yaml"), "utf8")));
  const rules = groups.flatMap((group) => group.rules);
  assert.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length);
  await allExist(rules.map(({ expr }) => expr));
});

test("the manual names every metric, and no other", async () => {
  const manual = readFileSync(join(DEPLOY, "..", "docs", "metrics.md"), "utf8");
  const told = new Set(Array.from(manual.matchAll(/`((?:weir|process)_[a-z_]+)`/g), ([, name = ""]) => name));
  assert.deepEqual([...told].toSorted(), [...(await shown())].toSorted());
});

async function allExist(expressions: readonly string[]): Promise<void> {
  const names = await shown();
  for (const expression of expressions) {
    const asked = namesIn(expression);
    assert.ok(asked.length > 0, expression);
    for (const name of asked) assert.ok(name === FOREIGN || names.has(name), `${name} in ${expression}`);
  }
}
