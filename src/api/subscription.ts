/**
 * `/sub/svc/{token}`: what a managed user's client imports. The token is the only credential. A wrong token
 * and a form that does not exist get the same answer, which reveals nothing.
 */
import type { IncomingHttpHeaders } from "node:http";
import * as z from "zod";
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { SubscriptionView, UsersControl } from "#core/users.ts";
import { acceptedLanguages, LANGUAGES, languageOf, type Language } from "#lib/languages.ts";
import { route, type Route } from "./route.ts";
import { queryOf } from "./shapes.ts";
import { joinedSubscription } from "./joined-subscription.ts";
import { linkList, linksOf, mihomoProfile, singBoxProfile } from "./subscription-formats.ts";
import { subscriptionPage } from "./subscription-page.ts";

const TEXT = "text/plain; charset=utf-8";
const NOT_FOUND = "404 page not found\n";
/** The page loads nothing and sends no referrer: its address is a secret. */
const PAGE_HEADERS = {
  "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-robots-tag": "noindex",
};
/** Characters of a `User-Agent` that are looked at. */
const LONGEST_AGENT = 256;
/** sing-box for Android, iOS, macOS and tvOS. */
const SING_BOX_APP = /\bSF[AIMT]\b/;
/** Hours after which clients are to ask again. */
const UPDATE_HOURS = 12;

interface Format {
  readonly type: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Null: the link cannot be said in this form. */
  readonly body: (view: SubscriptionView, asked: Asked) => string | null;
}

const SING_BOX: Format = {
  type: "application/json; charset=utf-8",
  body: (view, { headers }) => singBoxProfile(view, SING_BOX_APP.test(agentOf(headers))),
};

/** What `?format=` may be; the first name of each is the one in the manual. */
const FORMATS: Readonly<Record<string, Format>> = {
  base64: { type: TEXT, body: linkList },
  mihomo: { type: "text/yaml; charset=utf-8", body: mihomoProfile },
  clash: { type: "text/yaml; charset=utf-8", body: mihomoProfile },
  "sing-box": SING_BOX,
  singbox: SING_BOX,
  html: {
    type: "text/html; charset=utf-8",
    headers: PAGE_HEADERS,
    body: (view, { language }) => subscriptionPage(view, language),
  },
};

/** The contract's own answer: one link, byte for byte; of a fleet one a line. */
const PLAIN: Format = {
  type: TEXT,
  body: (view) =>
    Buffer.from(
      linksOf(view)
        .map(({ link }) => link)
        .join("\n"),
    ).toString("base64"),
};

const query = queryOf({
  format: z
    .string()
    .optional()
    .meta({ description: "Absent: one link in base64, of a fleet one a node", enum: Object.keys(FORMATS) }),
  lang: z
    .string()
    .optional()
    .meta({ description: "Language of the page; absent: as `Accept-Language` wants", enum: LANGUAGES }),
});

export function subscriptionRoutes(users: UsersControl, log: Log): readonly Route[] {
  return (["GET", "HEAD"] as const).map((method) =>
    route({
      method,
      path: "/sub/svc/:token",
      scope: "open",
      summary: "One proxy share link in base64, or a profile or page made of it",
      query,
      answer: {
        status: 200,
        type: "text/plain",
        otherTypes: ["text/yaml", "text/html", "application/json"],
        description: "The link, or the profile or page; 404 for a token that has none",
      },
      async handle({ params, query: { format, lang = "" }, request, reply }) {
        const language = languageOf([lang, ...acceptedLanguages(request.headers["accept-language"])]);
        const asked = { format, language, headers: request.headers };
        const look = (): Found | null => orNothing(() => find(users, params.token, asked), log);
        let found = look();
        const fleet = users.admin?.fleet ?? null;
        if (found !== null && fleet !== null) {
          await fleet.freshen(); // the user may have moved more on other nodes
          found = look();
        }
        reply.header("cache-control", "no-store");
        if (found === null) return reply.code(404).type(TEXT).send(NOT_FOUND);
        return reply.headers(found.headers).type(found.type).send(found.body);
      },
    }),
  );
}

/** Names by which clients are known; the first that is there counts. Browsers say that they take HTML. */
const AGENTS: readonly (readonly [agent: RegExp, format: string])[] = [
  [/clash|mihomo|stash/i, "mihomo"],
  [/sing-box|\bSF[AIMT]\b/i, "sing-box"],
];

function agentOf({ "user-agent": agent = "" }: IncomingHttpHeaders): string {
  return agent.slice(0, LONGEST_AGENT);
}

function formatOf(headers: IncomingHttpHeaders): string | undefined {
  const agent = agentOf(headers);
  const { accept = "" } = headers;
  const known = AGENTS.find(([pattern]) => pattern.test(agent));
  if (known !== undefined) return known[1];
  return agent.startsWith("Mozilla/") && accept.includes("text/html") ? "html" : undefined;
}

interface Found {
  readonly type: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

interface Asked {
  /** Absent: none is named. */
  readonly format: string | undefined;
  readonly language: Language;
  readonly headers: IncomingHttpHeaders;
}

function find({ admin }: UsersControl, token: string, asked: Asked): Found | null {
  const { format, headers } = asked;
  const view = joinedSubscription(token.split("."), admin);
  if (view === null) return null;
  const found = (name: string): Found | null => {
    const wanted = Object.hasOwn(FORMATS, name) ? FORMATS[name] : undefined;
    const body = wanted?.body(view, asked) ?? null;
    if (wanted === undefined || body === null) return null;
    return { type: wanted.type, headers: { ...wanted.headers, ...usageHeaders(view) }, body };
  };
  if (format !== undefined) return found(format);
  const byAgent = view.byAgent ? formatOf(headers) : undefined;
  // what was chosen for a client may not be able to say the link
  return (byAgent === undefined ? null : found(byAgent)) ?? plain(view, asked);
}

function plain(view: SubscriptionView, asked: Asked): Found | null {
  const body = PLAIN.body(view, asked);
  const isLimited = view.totalBytes > 0 || view.expiresAtMs !== null;
  return body === null ? null : { type: PLAIN.type, headers: isLimited ? usageHeaders(view) : {}, body };
}

/** A fault of ours is the same answer, too (svc-admin-api §10), and the token never enters the log. */
function orNothing<T>(work: () => T | null, log: Log): T | null {
  try {
    return work();
  } catch (error) {
    log.error(`subscription: ${messageOf(error)}`);
    return null;
  }
}

/** What clients show: the de-facto standard of subscription servers. A total or end of 0 is none. */
function usageHeaders(view: SubscriptionView): Readonly<Record<string, string>> {
  const expire = view.expiresAtMs === null ? 0 : Math.floor(view.expiresAtMs / 1000);
  const { uploadBytes, downloadBytes, totalBytes, title } = view;
  return {
    "subscription-userinfo": `upload=${uploadBytes}; download=${downloadBytes}; total=${totalBytes}; expire=${expire}`,
    "profile-update-interval": `${UPDATE_HOURS}`,
    "profile-title": `base64:${Buffer.from(title).toString("base64")}`,
  };
}
