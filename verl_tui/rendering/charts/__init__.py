"""Charts as rows of styled text: what to plot, how it is reduced to dots, and how it is drawn."""
