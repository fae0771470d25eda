import type { SameKeys } from "#lib/words.ts";
import type { restore as english } from "../en/restore.ts";

export const restore: SameKeys<typeof english> = {
  "restore.title": "Восстановить из копии",
  "restore.file": "Файл резервной копии",
  "restore.key": "Пароль или ключ age, если копия зашифрована",
  "restore.keyHint":
    "От ключа age — строка AGE-SECRET-KEY-1…. Он передаётся weir только для чтения файла и нигде не хранится.",
  "restore.look": "Посмотреть",
  "restore.made": "Создана",
  "restore.version": "Чем",
  "restore.listeners": "Слушатели",
  "restore.choices": "Группы с выбором",
  "restore.same": "такая же, как сейчас",
  "restore.different": "другая",
  "restore.lost": "Что есть сейчас и чего нет в копии",
  "restore.lostNothing": "Все пользователи, токены и слушатели в ней есть.",
  "restore.lostAlways":
    "Трафика, записей аудита и событий после создания копии в ней нет. Всё, что есть сейчас, останется на машине как *.before-restore-*, а конфигурация — как одна из её версий.",
  "restore.otherSecret": "После этого страница спросит другой секрет: из конфигурации в копии.",
  "restore.otherAddress":
    "После этого контроллер слушает по другому адресу: эта страница может его не найти.",
  "restore.sure": "Заменить текущее состояние; все соединения оборвутся",
  "restore.other": "Выбрать другой файл",
  "restore.put": "Восстановить и перезапустить",
  "restore.restarting": "Копия готова; weir перезапускается с ней",
  "restore.open": "Восстановить из копии…",
  "restore.entries": {
    one: "{count} запись",
    few: "{count} записи",
    many: "{count} записей",
    other: "{count} записи",
  },
};
