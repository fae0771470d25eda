import { ConfigError } from "#core/errors.ts";
import { SILENT } from "#core/log.ts";
import { addressOf } from "./controller-address.ts";
import { askController } from "./controller-request.ts";
import { parseFlags, usageText, UsageError, type FlagTable } from "./flags.ts";
import { linesOf, setUp } from "./load.ts";
import { SOURCE_FLAGS } from "./run-flags.ts";

const FLAGS: FlagTable = {
  ...SOURCE_FLAGS,
  month: { kind: "text", value: "YYYY-MM", help: "html: which month; absent: the last one that is over" },
  format: { kind: "text", value: "NAME", help: "html (absent), csv or ndjson" },
  key: {
    kind: "text",
    value: "KEY",
    help: "csv, ndjson: the series, such as device:phone; absent: global:global",
  },
  by: { kind: "text", value: "NAME", help: "csv, ndjson: hour, day (absent) or month" },
  days: { kind: "text", value: "COUNT", help: "csv, ndjson: how far back, at most 400; absent: 31" },
  mail: { kind: "text", value: "ADDRESS", help: "html: with the head of a message to it, for sendmail -t" },
};

export const REPORT_USAGE = usageText(
  `usage: weir report [flags]   what the running weir has counted: a month of every policy as a page, or one series
`,
  FLAGS,
);

const BASE = "/api/svc/traffic-control/reports";
const DAY_SECONDS = 86_400;
const MOST_DAYS = 400;

/** `weir report`: 1 where the weir that runs cannot be asked. */
export async function reportCommand(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const flags = parseFlags(args, FLAGS, env);
  if (flags.rest.length > 0) throw new UsageError(REPORT_USAGE);
  const format = flags.text("format") ?? "html";
  const mail = flags.text("mail");
  if (!["html", "csv", "ndjson"].includes(format))
    throw new UsageError(`report: -format takes html, csv or ndjson, not ${format}`);
  if (mail !== null && (format !== "html" || !/^[^\s<>",;]+@[^\s<>",;]+$/.test(mail)))
    throw new UsageError("report: -mail takes one address such as me@example.com, and the format html");
  const query = format === "html" ? { month: flags.text("month") ?? "" } : seriesQuery(flags);
  const setup = setUp(flags, env, SILENT);
  const { file, result } = setup.first();
  if (result.errors !== undefined) throw new ConfigError(linesOf(file, result.errors).join("\n"));
  const address = addressOf(result.config, setup.home, result.config.controller.secret, "report");
  const path = format === "html" ? "month.html" : `export.${format}`;
  const text = await askController(
    address,
    "GET",
    `${BASE}/${path}?${new URLSearchParams(query).toString()}`,
  );
  process.stdout.write(mail === null ? text : messageOf(text, mail));
  return 0;
}

function seriesQuery({ text }: { text(flag: string): string | null }): Record<string, string> {
  const days = Number(text("days") ?? "31");
  if (!(Number.isInteger(days) && days > 0 && days <= MOST_DAYS))
    throw new UsageError(`report: -days takes a number from 1 to ${MOST_DAYS}, not ${text("days")}`);
  const to = Math.floor(Date.now() / 1000) + 1;
  return {
    key: text("key") ?? "",
    granularity: text("by") ?? "day",
    from: `${to - days * DAY_SECONDS}`,
    to: `${to}`,
  };
}

/** RFC 5322 and 2045. The title of the page is its subject; base64, because lines of a message have at most 998 characters. */
function messageOf(html: string, to: string): string {
  const title = /<title>([^<]*)<\/title>/.exec(html)?.[1] ?? "Traffic";
  const body = Buffer.from(html).toString("base64").replaceAll(/.{76}/g, "$&\r\n");
  const head = [
    `To: ${to}`,
    `Subject: weir: ${title}`,
    "MIME-Version: 1.0",
    "Content-Type: text/html; charset=utf-8",
    "Content-Transfer-Encoding: base64",
  ];
  return `${head.join("\r\n")}\r\n\r\n${body}\r\n`;
}
