/** The configuration file through the Controller: text, remarks, edits, versions, trials. */
import * as z from "zod";
import type { ConfigChange, ConfigFileControl, ConfigKept } from "#core/control.ts";
import type { Edit } from "#core/config-edit.ts";
import { ApiError } from "#core/errors.ts";
import { route, type Answer, type Route } from "#api/route.ts";
import { jsonObject, queryInt, queryOf } from "#api/shapes.ts";
import { afterwards } from "./upkeep.ts";
import {
  checkAnswer,
  editsBody,
  editsList,
  fileAnswer,
  hashAnswer,
  hashField,
  previewAnswer,
  versionAnswer,
} from "./config-file-shapes.ts";

/** A configuration has at most 16 MiB; in JSON a text is longer. */
const LARGE = { maxBodyBytes: 24 * 1024 * 1024, tooLarge: "the request body exceeds 24 MiB" } as const;

const ok = (description: string, schema: z.ZodType): Answer => ({ status: 200, description, schema });
const faults = {
  500: "It is good but cannot be put in force, or the file cannot be written; everything stays as it was",
};

/** Seconds; absent: for good. */
export const confirmQuery = queryInt(5, 3_600).optional();
const changeQuery = queryOf({ confirm: confirmQuery });
const rollbackBody = jsonObject({ hash: hashField, version: z.int().min(1).optional() });

export function configFileRoutes(file: ConfigFileControl): readonly Route[] {
  return [...readRoutes(file), ...changeRoutes(file), ...trialRoutes(file)];
}

function readRoutes(file: ConfigFileControl): readonly Route[] {
  return [
    route({
      method: "GET",
      scope: "owner", // every secret that weir has is in it
      path: "/api/svc/config",
      summary: "The configuration file as text, with its hash, its earlier versions and what is on trial",
      answer: ok("The file", fileAnswer),
      async handle() {
        const { versions, trial, ...view } = await file.view();
        const listed = versions.map(({ id, sizeBytes, writtenAtMs }) => ({
          id,
          size_bytes: sizeBytes,
          written_at: Math.floor(writtenAtMs / 1000),
        }));
        const left = trial && { text: trial.text, seconds_left: Math.ceil(trial.leftMs / 1000) };
        return { ...view, versions: listed, trial: left };
      },
    }),
    route({
      method: "GET",
      scope: "owner",
      path: "/api/svc/config/versions/:id",
      summary: "An earlier version of the configuration file",
      answer: ok("Its text", versionAnswer),
      async handle({ params }) {
        if (!/^[1-9]\d{0,8}$/.test(params.id)) throw new ApiError(404, `there is no version ${params.id}`);
        return { id: Number(params.id), text: await file.version(Number(params.id)) };
      },
    }),
    route({
      method: "GET",
      scope: "read",
      path: "/api/svc/config/schema",
      summary: "JSON Schema of the configuration file, for editors",
      answer: ok("A JSON Schema, draft 2020-12", z.looseObject({})),
      handle: () => file.schema(),
    }),
    route({
      method: "POST",
      scope: "admin",
      path: "/api/svc/config/check",
      onlyReads: true,
      ...LARGE,
      summary: "Errors and warnings of a text; nothing changes",
      body: jsonObject({ text: z.string() }),
      answer: ok("In the order of the text, errors first", checkAnswer),
      handle: async ({ body }) => ({ remarks: await file.check(body.text) }),
    }),
    route({
      method: "POST",
      scope: "owner", // every secret that weir has is in it
      path: "/api/svc/config/preview",
      onlyReads: true,
      summary: "The text that edits would make of the file, with errors and warnings; nothing changes",
      body: jsonObject({ edits: editsList }),
      answer: ok("Both texts, and the hash of the file as it is", previewAnswer),
      handle: ({ body }) => file.preview(body.edits),
    }),
  ];
}

function changeRoutes(file: ConfigFileControl): readonly Route[] {
  const common = {
    scope: "admin",
    query: changeQuery,
    answer: ok("Done; the file's hash by now", hashAnswer),
    faults,
  } as const;
  return [
    route({
      ...common,
      ...LARGE,
      method: "PUT",
      path: "/api/svc/config",
      summary: "Put a text in force and into the configuration file",
      body: jsonObject({ text: z.string().min(1), hash: hashField }),
      async handle({ body, query, signal, note }) {
        note({ before: body.hash, after: { seconds: query.confirm ?? null } });
        return done(await file.put(body.text, changeOf(body.hash, query.confirm)), signal);
      },
    }),
    route({
      ...common,
      method: "PATCH",
      path: "/api/svc/config/edits",
      summary: "Change single values of the configuration file; all other lines keep their bytes",
      body: editsBody,
      async handle({ body, query, signal, note }) {
        const edits: readonly Edit[] = body.edits;
        note({ before: body.hash, after: edits.map(({ op, path }) => ({ op, path })) }); // values may be secrets
        return done(await file.edit(edits, changeOf(body.hash, query.confirm)), signal);
      },
    }),
    route({
      ...common,
      method: "POST",
      path: "/api/svc/config/rollback",
      summary:
        "Go back to an earlier version of the configuration file; the present one becomes the newest of these",
      body: rollbackBody,
      async handle({ body, query, signal, note }) {
        const { hash, version = null } = body;
        note({ before: hash, after: { version } });
        return done(await file.rollback(version, changeOf(hash, query.confirm)), signal);
      },
    }),
  ];
}

function trialRoutes(file: ConfigFileControl): readonly Route[] {
  const common = {
    method: "POST",
    scope: "admin",
    answer: ok("Done; the file's hash by now", hashAnswer),
    faults,
  } as const;
  return [
    route({
      ...common,
      path: "/api/svc/config/confirm",
      summary: "Write the configuration that is on trial into the file",
      handle: async ({ signal }) => done(await file.confirm(), signal),
    }),
    route({
      ...common,
      path: "/api/svc/config/cancel",
      summary: "Take back the configuration that is on trial",
      handle: async ({ signal }) => done(await file.cancel(), signal),
    }),
  ];
}

export function changeOf(hash: string, confirmSeconds: number | undefined): ConfigChange {
  return { hash: hash.toLowerCase(), trialMs: confirmSeconds === undefined ? null : confirmSeconds * 1000 };
}

/** The client gets its answer before the Controller listens elsewhere. */
export function done({ hash, settle }: ConfigKept, signal: AbortSignal): { readonly hash: string } {
  afterwards(signal, settle);
  return { hash };
}
