import { decodeConfig, encodeConfig } from "#config/encoding.ts";
import type { SourceFile } from "#app/loader.ts";
import { ConfigFile } from "./config-file.ts";
import type { ConfigReader } from "./config-reader.ts";

/** The file of the source as text, read and written in the encoding that it has. */
export function openSourceFile(path: string, reader: Pick<ConfigReader, "readEdited">): SourceFile {
  const file = new ConfigFile(path);
  return {
    path,
    async read() {
      const { bytes, hash } = await file.read();
      return { text: decodeConfig(bytes, path), hash };
    },
    async edited(text, edits) {
      const made = await reader.readEdited({ text }, { edits });
      return { file: path, result: made.result, text: new TextDecoder().decode(made.text) };
    },
    async prepare(text, hash) {
      const { bytes } = await file.read();
      return file.prepare(encodeConfig(text, bytes), hash);
    },
    versions: () => file.versions(),
    async version(id) {
      const content = await file.version(id);
      return content === null ? null : decodeConfig(content.bytes, `version ${id}`);
    },
  };
}
