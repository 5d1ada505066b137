"""What the scripts of a page say: the page brings the texts along, since all of them are in the one catalogue."""

from mutirao.server.page.catalogue import marked

SAID = {
    "away": marked("The server does not answer. Try again in a moment."),
    "draft-restored": marked("Your draft from earlier is here again."),
    "draft-kept": marked("Draft kept in this browser."),
    "no-preview": marked("This file cannot be shown."),
    "file-kept": marked("{name} is uploaded."),
    "moved": marked("Moved."),
    "keys-on": marked("Keyboard shortcuts are on."),
    "keys-off": marked("Keyboard shortcuts are off."),
    "check-required": marked("This is needed."),
    "check-integer": marked("A whole number is wanted, such as 42."),
    "check-integer-large": marked("This number is too large."),
    "check-number": marked("A number is wanted, such as 12.50."),
    "check-json": marked("This is not JSON."),
    "draft-too-large": marked("This is too large to be kept as a draft in this browser."),
    "file-coming": marked("{name} is being uploaded: wait until it is here."),
    "preview-part": marked("This is the beginning; download the file to see all of it."),
    "copied": marked("Copied."),
    "counted": marked("Instances that this is done to: {count}"),
    "pdl-right": marked("No mistakes found."),
    "pdl-wrong": marked("Mistakes: {count}. Nothing can be put in place before they are gone."),
    "pdl-place": marked("Line {line}, column {column}:"),
    "pdl-hint": marked("hint"),
    "pdl-put": marked("{flow}: version {version} is in place."),
    "pdl-put-all": marked("It is in place."),
    "pdl-renamed": marked("This makes a new flow called {flow}; {own} stays as it is."),
    "pdl-known": marked("There is a flow called {flow} already: this makes a new version of it."),
    "check-numbers": marked("Numbers are wanted, such as 48, 24, 1."),
    "nothing-filled": marked("Nothing is filled in. Press once more if that is right."),
}
