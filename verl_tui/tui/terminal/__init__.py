"""The one place that knows Textual's inside.

Each part below is as in Textual 8.2. Where one is missing, the app goes on as a plain Textual app.

`cell_diff` (writes only cells that have changed, 4 to 10 times fewer bytes; no public way):
- `textual._compositor.LayoutUpdate`, `ChopsUpdate`, `CompositorUpdate`: frames before they are
  written. Without them Textual writes its own.

`output`:
- `App._display`: hands each frame to `cell_diff`.
- `App._driver`: takes notifications as escape sequences. Without it none are written.
- `App._disable_tooltips`: spares each screen a widget.
- `Screen._compositor.render_strips`: the frame as text. Without it, read off the SVG picture.

`buffered_screen` (one paint for a screen that opens or closes, instead of several):
- `Screen._post_register`: the size is taken on before the first styling.
- `Screen._refresh_layout`, `_compositor._full_map`: widgets just shown are repainted.
- `Widget._clear_arrangement_cache`: a grid whose rows change is laid out at once.
- `Screen._compositor_refresh`, `_repaint_required`, `_compositor.update_widgets`: no paint before
  the screen is filled.
- `Screen._on_timer_update`, `_screen_resized`: no waiting, no frame of a size before.

`driver` (ends with its terminal, also in the middle of a frame; takes any bytes as keys):
- `textual._xterm_parser.XTermParser`
- `LinuxDriver._file`, `_loop`, `_app`, `_debug`, `_auto_restart`, `_must_signal_resume`,
  `_sigcont_application`, `_get_terminal_size`.
  Without any of these Textual's own driver is used.

`net` (an error costs the part of the screen that it happened in, and not the app):
- `MessagePump._dispatch_message`, `App._handle_exception`, `textual._context.active_message_pump`:
  what handlers, callbacks and layouts raise, and where. Without them Textual ends the app at the
  first error.

`scrolling`:
- `Widget._scroll_update`: a list grows without a layout of the whole screen.
"""
