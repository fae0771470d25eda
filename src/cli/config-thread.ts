/** The program of a thread that reads configurations. */
import { parseConfig } from "#config/parse.ts";
import { SILENT } from "#core/log.ts";
import { answerEach } from "#documents/answer.ts";
import { packResult } from "#documents/packed-config.ts";
import { buffersOf } from "#documents/packed.ts";
import type { ConfigReply, ConfigRequest } from "./config-messages.ts";
import { withEdit } from "./text-edit.ts";
import { openParseEnv, REGISTRIES } from "./parse-env.ts";
import { readConfigFile } from "./source.ts";

void answerEach<ConfigRequest, ConfigReply>(
  ({ settings, document, edit }) => {
    const found = "text" in document ? document.text : readConfigFile(document.file);
    const text = edit === null ? found : withEdit(found, edit);
    const result = packResult(parseConfig(text, openParseEnv(settings, SILENT)), REGISTRIES);
    return { result, edited: edit === null ? null : new TextEncoder().encode(text) };
  },
  ({ result, edited }) => buffersOf([...result.config, edited]),
);
