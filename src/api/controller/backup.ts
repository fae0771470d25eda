import type { BackupControl } from "#core/control.ts";
import { route, type Route } from "#api/route.ts";

const TYPE = "application/octet-stream";

export function backupRoutes(backup: BackupControl): readonly Route[] {
  return [
    route({
      method: "GET",
      scope: "owner", // every secret that weir has is in it
      path: "/api/svc/backup",
      summary: "A backup: users, tokens, audit log, traffic control, choices and the configuration's text",
      answer: {
        status: 200,
        type: TYPE,
        description: "A file for `weir restore`, not encrypted",
      },
      faults: { 500: "A store cannot be read at present" },
      async handle({ reply }) {
        const bytes = await backup.make();
        await reply
          .header("cache-control", "no-store")
          .header("content-disposition", 'attachment; filename="weir.backup"')
          .type(TYPE)
          .send(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
      },
    }),
  ];
}
