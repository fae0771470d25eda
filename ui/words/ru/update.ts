import type { SameKeys } from "#lib/words.ts";
import type { update as english } from "../en/update.ts";

export const update: SameKeys<typeof english> = {
  "update.title": "Версия",
  "update.running": "Работает",
  "update.check": "Проверить новую версию",
  "update.off": "Источник новых версий не задан: `update.url` и `update.public-key`.",
  "update.newer": "{version} новее.",
  "update.same": "Это последняя версия.",
  "update.older": "В папке выпусков {version}, она старее: ничего новее нет.",
  "update.unknown": "В папке выпусков {version}; новее ли она, определить нельзя.",
  "update.byHand": "Её установит `weir update` на этой машине; с `update.by-controller` — и эта страница.",
  "update.take": "Обновить до {version}",
  "update.ask": "Обновить программу?",
  "update.text":
    "{version} будет загружена, проверена по ключу и установлена. Она сменит эту версию без обрыва соединений; если не удастся, продолжит работать эта. Страница загрузится заново.",
  "update.failed": "Не обновлено",
  "update.busy": "Идёт обновление; это может занять несколько минут",
  "update.done": "Работает {version}",
};
